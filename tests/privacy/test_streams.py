"""Two streams lose no more than their steps say, also where a record changes its batch."""

from __future__ import annotations

import pytest

from tests.privacy.streams import CASES, MUTANTS, Case, Mutant, Quantiles

LOOSE = 1e-9
"""Logarithms are floating-point numbers."""


@pytest.mark.thinned(2)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_streams_lose_more_than_their_steps(case: Case | Quantiles) -> None:
    """All pairs of streams of two batches, also those in which a record moves."""
    assert case.ratio() <= 1.0 + LOOSE


@pytest.mark.thinned(2)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_record_that_moves_loses_the_price_of_both_batches_and_may_lose_all_of_it(
    case: Case | Quantiles,
) -> None:
    """One cap would not be enough: where the ratio is above a half, two batches lose more."""
    assert case.moved <= case.ratio_of_a_move() <= 1.0 + LOOSE


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: f"{each.name}, {each.case}")
def test_mistakes_are_caught(mutant: Mutant) -> None:
    """Each loses more than is claimed then."""
    assert mutant.loss() > 1.01
