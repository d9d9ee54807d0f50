from __future__ import annotations

import pytest

from tests.privacy.quantiles.cases import EPSILON
from tests.privacy.quantiles.mutants import MUTANTS, Mutant


def names(mutant: Mutant) -> str:
    return f"{mutant.name}, {mutant.case.name}"


@pytest.mark.thinned(5)
@pytest.mark.parametrize("mutant", MUTANTS, ids=names)
def test_enumeration_catches(mutant: Mutant) -> None:
    """The mistake loses clearly more than it charges, on batches where production does not."""
    assert mutant.real_loss() <= EPSILON
    assert mutant.loss() > 1.05 * EPSILON
