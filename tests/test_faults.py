"""Every fault has its tests, and they exist."""

import re

import pytest

from tests.faults import is_there, rows
from tests.mutants import Mutant, failed, mutants

TABLE = list(rows(quick=False))


def test_the_eighty_rows_come_first_and_the_others_have_names() -> None:
    """Those of the fault table are in its order; what was found later has the section it is of."""
    assert [row["row"] for row in TABLE[:80]] == [str(number) for number in range(1, 81)]
    later = [(row["row"], row["fault"]) for row in TABLE[80:]]
    assert len(later) == len(set(later))
    assert all(re.fullmatch(r"\d+\.(\d+|[a-j])", str(row)) for row, _ in later)


def test_every_way_in_which_reading_was_attacked_has_its_row() -> None:
    """Ten of files and engines, ten of folders, servers and lakes, and the claims."""
    attacked = [str(row["row"]) for row in TABLE if str(row["row"]).startswith("27.")]
    assert attacked.count("27.0") == 10
    assert {*attacked} == {"27.0", *(f"27.{x}" for x in (*"abcdefghij", *range(7, 15)))}


def test_every_fault_has_tests_that_exist() -> None:
    """None is empty, and none points at a test that was renamed or removed."""
    named = [(row["fault"], test) for row in TABLE for test in str(row["tests"]).split("\n")]
    assert [(fault, test) for fault, test in named if not is_there(test)] == []


def test_a_test_that_is_not_there_is_found() -> None:
    """Power: a wrong name, a wrong file."""
    assert not is_there("crash/test_sweeps.py::test_nothing")
    assert not is_there("crash/nowhere.py::test_walks")


MUTANTS = mutants()
PARTS = {
    "ledger": ("store/ledger/",),
    "anchor": ("store/anchor.py", "store/verified_open.py"),
    "outbox": ("store/outbox.py", "engine/deliver.py"),
    "sources": ("sources/", "engine/ingest.py"),
}


@pytest.mark.parametrize("part", PARTS)
def test_mistakes_are_named_in_each_part_that_a_budget_rests_on(part: str) -> None:
    """At least four in each, and each is found by tests of the table."""
    of = [mutant for mutant in MUTANTS if mutant.file.startswith(PARTS[part])]
    assert len(of) >= 4
    named = {test for row in TABLE for test in str(row["tests"]).split("\n")}
    assert [mutant.what for mutant in of if not named.issuperset(mutant.tests)] == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_a_mistake_fails_the_tests_that_are_said_to_find_it(mutant: Mutant) -> None:
    """With the mistake in the place of what is there, every one of them fails."""
    assert failed(mutant, mutant.tests) == sorted(mutant.tests)


def test_without_a_mistake_the_same_tests_pass() -> None:
    """So it is the mistake that they find; one of each part is tried."""
    assert failed(None, tuple(MUTANTS[number].tests[0] for number in (0, 7, 12, 17))) == []
