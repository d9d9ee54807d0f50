"""Every fault has its tests, and they exist."""

from tests.faults import is_there, rows

TABLE = list(rows(quick=False))


def test_there_are_eighty_rows() -> None:
    """As many as the fault table has, in its order."""
    assert [row["row"] for row in TABLE] == [str(number) for number in range(1, 81)]


def test_every_fault_has_tests_that_exist() -> None:
    """None is empty, and none points at a test that was renamed or removed."""
    named = [(row["fault"], test) for row in TABLE for test in str(row["tests"]).split("\n")]
    assert [(fault, test) for fault, test in named if not is_there(test)] == []


def test_a_test_that_is_not_there_is_found() -> None:
    """Power: a wrong name, a wrong file."""
    assert not is_there("crash/test_sweeps.py::test_nothing")
    assert not is_there("crash/nowhere.py::test_walks")
