"""Bayesian linear regression of a batch's location and scale on its public numbers.

Place and width are those of a batch against a reference: by how many of its half widths the middle
is shifted, and the logarithm of what it is stretched by.

References:
    West & Harrison 1997, chapter 4 (regression that forgets by a discount).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from streamdp.learning.arrays import packed, unpacked
from streamdp.types import FloatArray, Json

FIRST_LEVEL, FIRST_EFFECT = 3.0, 0.5
"""Deviations before any release: of what all batches have in common, and of what an input does."""

ERROR = 0.2
"""Deviation of a batch from what its numbers say."""

DISCOUNT = 0.995
"""Weight of a release relative to that of the next."""

LARGEST = np.array([30.0, 3.0])
"""Shift and logarithm of a stretch, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """Shift and stretch as linear functions of a batch's inputs.

    A batch of which a release shows little has little weight.

    Args:
        products: Σ w·x·xᵀ of past inputs, for shift and for stretch; shape (2, d, d).
        moments: Σ w·x·y, shape (2, d).
    """

    products: FloatArray
    moments: FloatArray

    @classmethod
    def start(cls, count: int) -> Self:
        """Return the regression before any release, for so many inputs."""
        return cls(np.zeros((2, count, count)), np.zeros((2, count)))

    def predict(self, inputs: FloatArray) -> tuple[float, float]:
        """Predict shift and log scale factor of a batch with inputs, a one first; shape (d,)."""
        first = np.full(len(inputs), (ERROR / FIRST_EFFECT) ** 2)
        first[0] = (ERROR / FIRST_LEVEL) ** 2
        effects = np.linalg.solve(self.products + np.diag(first), self.moments[..., None])
        each = effects[..., 0] @ inputs
        shift, stretch = each.clip(-LARGEST, LARGEST).tolist()
        return shift, stretch

    def updated(
        self,
        inputs: FloatArray,
        found: tuple[float, float],
        variances: tuple[float, float] = (0.0, 0.0),
    ) -> Regression:
        """Return the regression updated by one batch.

        Args:
            inputs: Of the batch, a one first; shape (d,).
            found: Its shift and stretch, as its release alone shows them.
            variances: Of their errors.
        """
        each = np.array(found).clip(-LARGEST, LARGEST)
        weights = ERROR**2 / (ERROR**2 + np.array(variances))
        return Regression(
            DISCOUNT * self.products + weights[:, None, None] * np.outer(inputs, inputs),
            DISCOUNT * self.moments + np.outer(weights * each, inputs),
        )

    def to_json(self) -> Json:
        """Return the sums, which `from_json` reads exactly."""
        return {"products": packed(self.products), "moments": packed(self.moments)}

    @classmethod
    def from_json(cls, state: Json) -> Self:
        """The inverse of `to_json`."""
        return cls(unpacked(state["products"]), unpacked(state["moments"]))
