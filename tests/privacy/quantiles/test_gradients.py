"""A bought gradient and the release beside it lose epsilon together; and mistakes lose more."""

from __future__ import annotations

import pytest

from streamdp.kinds.charging import UnitCharging
from streamdp.privacy.events import epsilon_of
from tests.privacy.quantiles.gradients import (
    BATCH,
    BOUGHT,
    EPSILON,
    GRADIENT_MUTANTS,
    Bought,
    GradientMutant,
)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("bought", BOUGHT, ids=lambda bought: bought.name)
def test_a_bought_gradient_and_its_release_lose_epsilon(bought: Bought) -> None:
    """Of records, of units and of groups: never more than is charged, and nearly that."""
    plan = bought.kind.plan(bought.kind.init(), BATCH)
    charge = UnitCharging(bought.bound).charge(plan)
    assert epsilon_of(charge.event) == EPSILON
    assert charge.epsilon_nano == 10**9
    assert bought.least <= bought.largest_loss() <= 1.0


@pytest.mark.thinned(5)
@pytest.mark.parametrize("mutant", GRADIENT_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mistake_with_gradients_is_caught(mutant: GradientMutant) -> None:
    """It loses clearly more than epsilon where production, as above, does not."""
    assert mutant.bought in BOUGHT
    assert mutant.loss() > 1.4
