"""Histograms on public cuts lose their price, whatever they cut next, and mistakes lose more."""

from __future__ import annotations

import pytest

from streamdp.mechanisms.quantile_tree.sharpness import Relation
from streamdp.privacy.events import epsilon_of, rho_of
from tests.privacy.noise.histograms import CASES, IN_RHO, MUTANTS, WHOLE, Case, Mutant, middle


def _named(case: Case) -> str:
    return f"{case} {case.relation}"


@pytest.mark.thinned(4)
@pytest.mark.parametrize("case", [*CASES, pytest.param(IN_RHO, marks=pytest.mark.long)], ids=_named)
def test_the_largest_loss_is_the_price(case: Case) -> None:
    """Never above it, and reached; the event says it."""
    measured = epsilon_of if case.price.measure == "epsilon" else rho_of
    assert measured(case.charge().event) == case.price.amount
    assert 0.99 <= case.largest_loss() <= 1.0 + 1e-9


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_the_booked_rho_of_a_price_in_epsilon_is_hardly_above_the_largest(
    relation: Relation,
) -> None:
    """A record that moves is booked as two draws of half the epsilon, half the rho of one."""
    case = Case(middle, shares=WHOLE, relation=relation, window=12)
    assert 0.9 <= case.largest_rho() <= 1.0


@pytest.mark.thinned(3)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mistake_is_caught(mutant: Mutant) -> None:
    """It loses clearly more than the price."""
    assert mutant.loss() > 1.2
