"""The vocabulary of the ledger: one law over every event, and both accountants."""

import json
import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from streamdp.errors import IntegrityError
from streamdp.privacy.accountants import epsilon_of_rho, rho_for, rho_of_epsilon
from streamdp.privacy.amounts import NANO, nano_up
from streamdp.privacy.events import (
    approximate,
    bounded_range,
    charge_of,
    choice,
    delta_of,
    epsilon_of,
    group,
    parallel,
    pure,
    rho_of,
    sequence,
    zero_concentrated,
)
from streamdp.types import Json

Cost = Callable[[Json], Fraction]
Case = tuple[Cost, Json, Json]


def pure_loss(event: Json) -> Fraction:
    found = epsilon_of(event)
    assert found is not None
    return found


AMOUNTS = st.fractions(min_value=0, max_value=2, max_denominator=10**6)
PURE = st.builds(pure, AMOUNTS) | st.builds(bounded_range, AMOUNTS)


def nested(leaves: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(sequence, st.lists(inner, max_size=4))
            | st.builds(parallel, st.lists(inner, max_size=4))
            | st.builds(choice, st.lists(inner, max_size=4))
            | st.builds(group, inner, st.integers(1, 5))
        ),
        max_leaves=12,
    )


EVENTS = nested(PURE)
MIXED = nested(PURE | st.builds(zero_concentrated, AMOUNTS))
COSTS = st.tuples(st.just(rho_of), MIXED, MIXED) | st.tuples(st.just(pure_loss), EVENTS, EVENTS)
"""A measure, and two events that have a loss in it."""


@settings(deadline=None)
@given(COSTS, st.integers(0, 5))
def test_n_at_once_are_n_in_a_row(case: Case, times: int) -> None:
    """A sequence costs its events one by one, however they are nested."""
    cost, event, _ = case
    row = sequence([event] * times)
    nested = sequence([sequence([event]), sequence([event] * (times - 1))] if times else [])
    assert cost(row) == cost(nested) == times * cost(event)


@settings(deadline=None)
@given(COSTS, st.integers(1, 5))
def test_costs_are_never_negative_and_grow(case: Case, size: int) -> None:
    """One event more, a share more, a row more: never cheaper."""
    cost, event, more = case
    assert cost(event) >= 0
    assert cost(sequence([event, more])) >= cost(event)
    assert cost(event) <= cost(parallel([event, more])) <= cost(sequence([event, more]))
    assert cost(choice([event, more])) == max(cost(event), cost(more))
    assert cost(event) <= cost(group(event, size)) <= cost(group(event, size + 1))


@settings(deadline=None)
@given(EVENTS)
def test_pure_loss_bounds_the_other(event: Json) -> None:
    """ε-DP is ε·tanh(ε/2)-zCDP, however the event is made up."""
    assert rho_of(event) <= rho_of_epsilon(pure_loss(event)) + Fraction(30, 10**30)
    assert rho_of(event) <= pure_loss(event) ** 2 / 2


LOSSES = st.fractions(min_value=Fraction(1, 10**6), max_value=1000, max_denominator=10**9)


@settings(deadline=None)
@given(LOSSES, st.integers(0, 40))
@example(Fraction(1), 40)
@example(Fraction(99), 30)
@example(Fraction(100), 30)
def test_a_pure_loss_costs_what_randomised_response_loses(epsilon: Fraction, halvings: int) -> None:
    """At no order more than is booked; what is booked is its loss as the order falls to one.

    The law is in numbers of 200 digits, of which the smallest order above one takes 30.
    """
    booked, more = rho_of_epsilon(epsilon), Fraction(4, 2**halvings)
    with localcontext(Context(prec=200)):
        exact, order = (Decimal(each.numerator) / each.denominator for each in (booked, more))
        loss = Decimal(epsilon.numerator) / epsilon.denominator
        power = loss.exp()
        likely, rare = power / (power + 1), 1 / (power + 1)
        moment = likely * (order * loss).exp() + rare * (-order * loss).exp()
        rounding = Decimal("1e-150")
        assert moment.ln() / order / (1 + order) <= exact + rounding
        limit = loss * (power - 1) / (power + 1)
        assert limit - rounding <= exact <= limit + Decimal("1.1e-30") + loss * Decimal("1e-40")
        if halvings == 40 and epsilon <= 10:
            assert moment.ln() / order / (1 + order) > exact * (1 - Decimal("1e-9"))


@settings(deadline=None)
@given(MIXED)
def test_what_holds_a_draw_without_pure_loss_has_none(event: Json) -> None:
    """However deep it stands: no part of a charge is left out of its epsilon."""
    without = '"zero-concentrated"' in json.dumps(event)
    assert (epsilon_of(event) is None) is without
    assert (charge_of(event).epsilon_nano is None) is without


DELTAS = st.integers(0, 10**12).map(lambda atto: Fraction(atto, 10**18))


@settings(deadline=None)
@given(MIXED, MIXED, DELTAS, st.integers(0, 5))
def test_a_delta_stands_beside_the_loss(event: Json, other: Json, delta: Fraction, n: int) -> None:
    """It adds up in a row, counts once in parts and choices, and changes neither loss."""
    some = approximate(event, delta)
    assert (epsilon_of(some), rho_of(some)) == (epsilon_of(event), rho_of(event))
    assert delta_of(event) == 0
    assert delta_of(sequence([some, other] * n)) == n * delta
    assert delta_of(approximate(some, delta)) == 2 * delta
    assert delta_of(parallel([some, other, some])) == delta
    assert delta_of(choice([other, approximate(other, delta / 2), some])) == delta
    assert charge_of(sequence([some] * n)).delta_atto == n * delta * 10**18


def test_a_delta_is_not_multiplied_by_the_records_of_a_unit() -> None:
    """Two steps of (epsilon, delta) lose delta + e^epsilon·delta, which no event says."""
    some = approximate(pure(Fraction(1)), Fraction(1, 10**9))
    with pytest.raises(ValueError, match="whole units"):
        group(sequence([pure(Fraction(1)), some]), 2)
    with pytest.raises(IntegrityError, match="unknown type"):
        delta_of({"type": "group", "size": 2, "event": some})
    assert delta_of(group(pure(Fraction(1)), 2)) == 0


def test_a_delta_below_the_unit_of_the_ledger_is_rounded_up() -> None:
    """Never to nothing."""
    assert charge_of(approximate(pure(Fraction(1)), Fraction(1, 10**30))).delta_atto == 1
    assert charge_of(pure(Fraction(1))).delta_atto == 0


@settings(deadline=None)
@given(st.lists(COSTS, max_size=6))
def test_rounding_never_loses(cases: list[Case]) -> None:
    """What is booked charge by charge covers the exact cost of all, and each is a nano at least."""
    for wanted in (pure_loss, rho_of):
        events = [event for cost, event, _ in cases if cost is wanted]
        booked = [nano_up(wanted(event)) for event in events]
        assert all(nano >= 1 for nano in booked)
        assert sum(booked) >= wanted(sequence(events)) * NANO


def test_ten_tenths_are_one() -> None:
    """Ten charges of 0.1 fill a cap of 1 to the last unit."""
    assert 10 * nano_up(Fraction(1, 10)) == NANO


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": "gauss"},
        {"type": "pure"},
        {"type": "zero-concentrated"},
        "pure",
        {"type": "group", "size": 0, "event": {}},
        {"type": "approximate", "event": {"type": "pure", "epsilon": "1"}},
    ],
)
def test_unknown_events_are_refused(event: Json) -> None:
    """A newer streamdp's event is no event of cost 0."""
    for cost in (epsilon_of, rho_of, delta_of):
        with pytest.raises(IntegrityError, match="unknown type"):
            cost(sequence([pure(Fraction(1)), event]))


@settings(deadline=None)
@given(st.integers(1, 5 * NANO), st.integers(2, 12))
def test_conversion_is_a_bound_and_close(rho_nano: int, digits: int) -> None:
    """Never below the loss that a Gaussian of that rho has, never above Bun & Steinke's formula."""
    delta = Fraction(1, 10**digits)
    epsilon = epsilon_of_rho(rho_nano, delta) / NANO
    rho = rho_nano / NANO
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1e-8
    mu = math.sqrt(2 * rho)
    gaussian = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(
        -mu / 2 - epsilon / mu
    )
    assert gaussian <= float(delta) * (1 + 1e-6)


@pytest.mark.parametrize("rho_nano", [1, 17, 10**6, 333_333_333, 5 * NANO])
def test_conversion_is_the_least_bound_rounded_up(rho_nano: int) -> None:
    """Over all orders, in 40 digits: a unit of the ledger less would be none."""
    exact = Context(prec=40)
    log_delta = exact.ln(Decimal("1e-6"))

    def bound(order: Decimal) -> Decimal:
        rest = exact.divide(-log_delta - exact.ln(order), order - 1)
        return order * rho_nano + (exact.ln(exact.divide(order - 1, order)) + rest) * NANO

    low, high = Decimal("1.1"), Decimal(10**6)
    for _ in range(150):
        third = (high - low) / 3
        if bound(low + third) < bound(high - third):
            high -= third
        else:
            low += third
    assert epsilon_of_rho(rho_nano, Fraction(1, 10**6)) == math.ceil(bound(low))


@settings(deadline=None)
@given(st.fractions(min_value=Fraction(1, 1000), max_value=10), st.integers(2, 12))
def test_a_cap_in_rho_keeps_the_epsilon(epsilon: Fraction, digits: int) -> None:
    """The cap that stands for (epsilon, delta) converts back to no more, and one unit more does."""
    delta = Fraction(1, 10**digits)
    cap = rho_for(epsilon, delta)
    assert epsilon_of_rho(cap, delta) <= epsilon * NANO
    assert epsilon_of_rho(cap + 2, delta) >= epsilon * NANO - 1000
