"""The ledger's ρ against accountants of their own: of events, and of random releases."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.statistics.kind import Statistics
from streamdp.kinds.statistics.measures.protocol import Measure
from streamdp.privacy.amounts import NANO
from streamdp.privacy.events import (
    bounded_range,
    choice,
    epsilon_of,
    group,
    parallel,
    pure,
    rho_of,
    sequence,
    zero_concentrated,
)
from streamdp.privacy.price import Price
from streamdp.types import Json, Neighbours, UnitBound
from tests.privacy.accounting.accountant import ORDERS, divergence
from tests.privacy.noise.statistics import (
    BATCH,
    COUNT,
    CUT,
    LISTED,
    ONE,
    Case,
    Record,
    hides,
    loss_between,
    moment,
)

AMOUNTS = st.fractions(min_value=0, max_value=2, max_denominator=1000)
EVENTS: st.SearchStrategy[Json] = st.recursive(
    st.builds(pure, AMOUNTS)
    | st.builds(bounded_range, AMOUNTS)
    | st.builds(zero_concentrated, AMOUNTS),
    lambda inner: (
        st.builds(sequence, st.lists(inner, max_size=3))
        | st.builds(parallel, st.lists(inner, max_size=3))
        | st.builds(choice, st.lists(inner, max_size=3))
        | st.builds(group, inner, st.integers(1, 3))
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=300)
@given(EVENTS)
def test_no_mechanism_that_an_event_allows_loses_more_than_is_booked(event: Json) -> None:
    """At any order: neither more than αρ, nor more than ε where there is one."""
    rho, epsilon = float(rho_of(event)), epsilon_of(event)
    for order in ORDERS:
        found = divergence(event, order)
        assert found <= order * rho * (1 + 1e-9) + 1e-12
        assert epsilon is None or found <= float(epsilon) * (1 + 1e-9) + 1e-12


GAUSS = zero_concentrated(Fraction(1, 10))

TIGHT: dict[str, tuple[Json, Json]] = {
    "a group charged in proportion to its size": (group(GAUSS, 3), sequence([GAUSS] * 3)),
    "a group charged once": (group(GAUSS, 2), GAUSS),
    "one of two draws": (sequence([GAUSS, GAUSS]), parallel([GAUSS, GAUSS])),
    "a group outside of parts": (
        group(parallel([GAUSS, GAUSS]), 2),
        parallel([group(GAUSS, 1), GAUSS]),
    ),
    "the first of a choice": (
        choice([zero_concentrated(Fraction(1, 20)), GAUSS]),
        zero_concentrated(Fraction(1, 20)),
    ),
    "an exponential draw's ρ for a pure one": (
        pure(Fraction(1, 10)),
        bounded_range(Fraction(1, 10)),
    ),
}
"""What was drawn, and a wrong event for it that costs less."""


@pytest.mark.parametrize("name", TIGHT)
def test_a_wrong_price_is_seen(name: str) -> None:
    """What is drawn loses more than the wrong event's ρ, and not more than its own."""
    drawn, wrong = TIGHT[name]
    found = max(divergence(drawn, order) / order for order in ORDERS)
    assert float(rho_of(wrong)) * 1.05 < found <= float(rho_of(drawn)) * (1 + 1e-9)


MEASURES: tuple[Measure, ...] = (
    COUNT,
    LISTED,
    ONE,
    CUT,
    moment("sum"),
    moment("mean", 1),
    moment("variance", -1),
)
RECORDS = [
    (text, number, at)
    for text, number, at in itertools.product(("a", "z", None), (-9, 0, 3, 9, None), "gh")
]


@st.composite
def releases(draw: st.DrawFn) -> tuple[Statistics, Case, int]:
    """A release of some measures at some ρ for units of some records."""
    chosen = draw(st.lists(st.sampled_from(MEASURES), min_size=1, max_size=3, unique=True))
    weights = [draw(st.integers(1, 5)) for _ in chosen]
    grouped = draw(st.booleans())
    relation: Neighbours = (
        "add-remove" if grouped else draw(st.sampled_from(("add-remove", "substitute")))
    )
    rows = draw(st.integers(1, 4))
    rho = Fraction(draw(st.integers(1, 50)), draw(st.sampled_from((7, 100, 3000))))
    case = Case("random", tuple(chosen), relation, grouped, price=Price(rho, "rho"))
    kind = replace(
        case.kind(),
        shares=tuple(Fraction(weight, sum(weights)) for weight in weights),
        price=case.price.of_record(rows),
    )
    return kind, case, rows


@settings(deadline=None, max_examples=60)
@given(releases(), st.data())
def test_a_unit_loses_at_most_what_it_is_charged(
    release: tuple[Statistics, Case, int], data: st.DataObject
) -> None:
    """ρ of what production hides, of two batches that differ in all records of a unit."""
    kind, case, rows = release
    plan = kind.plan(kind.init(), BATCH)
    bound = None if rows == 1 else UnitBound("u", rows)
    charge = UnitCharging(bound).charge(plan)
    assert charge.epsilon_nano is None
    assert rho_of(charge.event) == case.price.amount
    assert 0 <= Fraction(charge.rho_nano, NANO) - case.price.amount < Fraction(1, NANO)
    one = data.draw(st.lists(st.sampled_from(RECORDS), max_size=2))
    units = st.lists(st.sampled_from(RECORDS), min_size=rows, max_size=rows)
    mine, other = data.draw(units), data.draw(units) if case.neighbours == "substitute" else []
    found = loss_between("rho", hides(kind, (*one, *mine)), hides(kind, (*one, *other)))
    assert found <= case.price.amount


def worst(kind: Statistics, rows: int) -> Fraction:
    """The most that a unit of alike records loses."""
    empty = hides(kind, ())
    alike: Sequence[Record]
    losses = []
    for record in RECORDS:
        alike = (record,) * rows
        losses.append(loss_between("rho", hides(kind, alike), empty))
    return max(losses)


SPLITS: dict[str, Callable[[Price, int], Price]] = {
    "as ε is": lambda price, rows: Price(price.amount / rows, "rho"),
    "not at all": lambda price, rows: price,
}


@pytest.mark.parametrize("rows", [2, 3])
def test_a_unit_loses_all_that_it_is_charged(rows: int) -> None:
    """k² is not too much: alike records reach it; a price divided by k, or by 1, is exceeded."""
    price = Price(Fraction(1, 10), "rho")
    kind = replace(Case("count", (COUNT,)).kind(), price=price.of_record(rows))
    assert worst(kind, rows) == price.amount
    for split in SPLITS.values():
        assert worst(replace(kind, price=split(price, rows)), rows) > price.amount
