"""One unit more, or other records of one, loses its price at most, however many they are."""

import pytest

from streamdp.kinds.charging import UnitCharging
from streamdp.privacy.events import epsilon_of, rho_of
from streamdp.types import UnitBound
from tests.privacy.noise.statistics import BATCH
from tests.privacy.noise.units import CASES, MUTANTS, Case, Mutant


@pytest.mark.thinned(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_largest_loss_is_what_is_charged(case: Case) -> None:
    """The charge is the configured price, never passed and reached."""
    charge = UnitCharging(UnitBound("u", case.rows)).charge(case.kind().plan({}, BATCH))
    cost = epsilon_of if case.price.measure == "epsilon" else rho_of
    assert cost(charge.event) == case.price.amount
    assert 0.99 <= case.largest_loss() <= 1.0


@pytest.mark.thinned(2)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mistakes_are_seen(mutant: Mutant) -> None:
    """Each loses more than is charged."""
    assert mutant.loss() > 1.4
