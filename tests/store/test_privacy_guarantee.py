"""What is summed of a ledger, and what may not be."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest

from streamdp.mechanisms.quantile_tree.planning.choice import CANDIDATES
from streamdp.privacy.events import (
    approximate,
    bounded_range,
    charge_of,
    choice,
    group,
    parallel,
    pure,
    sequence,
    zero_concentrated,
)
from streamdp.privacy.filters import Caps, Limit
from streamdp.store.ledger.privacy_guarantee import loss_of
from streamdp.types import Batch, Json
from tests.store.kept import LedgerStore, terms
from tests.worlds import World, quantiles_kind

DELTA = Fraction(1, 10**3)


def test_charges_that_releases_chose_have_no_bound_but_their_sum(tmp_path: Path) -> None:
    """A job that paid one epsilon at two prices in rho, as ledgers of old may have it."""
    kind = quantiles_kind(Fraction(1, 100))
    joint = replace(kind, form=CANDIDATES["joint"])
    found = []
    for name, second in (("alike", kind), ("chosen", joint)):
        world = World(tmp_path / name, days=6, make=True)
        first = [batch.key for batch in world.source.batches(world.clock.now())][:3]
        world.runner.round([world.job(kind=kind)], only=partial(_is_one_of, first))
        assert world.runner.round([world.job(kind=second)]).released == 3
        found.append(loss_of(world.store.database, "s", DELTA))
    assert [loss.pure for loss in found] == [6 * 10**7] * 2
    assert [loss.adaptive for loss in found] == [False, True]
    assert found[0].best[1] < 6 * 10**7
    assert found[1].best == ("sum", found[1].pure)


SO_MANY = 60
"""Releases of which the loss at a delta is less than the sum, by zero-concentrated loss alone."""

TREE, COUNTS = bounded_range(Fraction(1, 10)), pure(Fraction(1, 10))


@pytest.mark.parametrize(
    ("before", "after", "adaptive"),
    [
        (TREE, COUNTS, True),
        (TREE, choice([TREE, COUNTS]), False),
        (choice([TREE]), choice([TREE, COUNTS]), False),
        (choice([TREE]), sequence([COUNTS], mechanism="histograms"), False),
        (TREE, group(parallel([choice([TREE, COUNTS])], by=["x"]), 1), False),
    ],
    ids=str,
)
def test_a_price_that_no_release_chooses_may_change(
    tmp_path: Path, before: Json, after: Json, adaptive: bool
) -> None:
    """An upgrade that books the worst of more ways leaves the better bounds as they are."""
    store = LedgerStore.open(tmp_path / "s.db", 0)
    store.declare(terms(Caps(10**10, 10**10)), 0)
    for key in range(SO_MANY):
        event = before if key < SO_MANY // 2 else after
        store.reserve("s", "j", Batch("s", str(key)), charge_of(event), 0)
    found = loss_of(store.database, "s", DELTA)
    assert found.adaptive is adaptive
    assert (found.best[0] == "sum") is adaptive


KEYS = approximate(zero_concentrated(Fraction(1, 200)), Fraction(1, 10**9))
GROUPS = parallel([zero_concentrated(Fraction(1, 200))], by=["x"], groups=2)
COUNTED = sequence([zero_concentrated(Fraction(1, 200))], mechanism="discrete-gaussian")


@pytest.mark.parametrize(
    ("events", "adaptive"),
    [((KEYS, GROUPS), True), ((KEYS, COUNTED), False), ((GROUPS, COUNTED), False)],
    ids=["groups that keys find", "keys alone", "groups alone"],
)
def test_groups_that_keys_find_are_charges_that_releases_chose(
    tmp_path: Path, events: tuple[Json, Json], adaptive: bool
) -> None:
    """While no group is known nothing is charged: the cap bounds such a sum, and no sum itself."""
    store = LedgerStore.open(tmp_path / "s.db", 0)
    store.declare(terms(Caps(10**9, 10**9, (Limit(10**12, "delta"),), "rho")), 0)
    for job, event in zip(("first", "second"), events, strict=True):
        store.reserve("s", job, Batch("s", "a"), charge_of(event), 0)
    found = loss_of(store.database, "s", DELTA)
    assert found.adaptive is adaptive
    assert found.best[0] == ("lifetime cap" if adaptive else "zero-concentrated")


def _is_one_of(keys: list[str], batch: Batch) -> bool:
    return batch.key in keys
