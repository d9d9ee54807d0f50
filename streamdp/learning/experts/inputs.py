"""Where batches lie and how wide they are, as public numbers of them say: a linear regression.

Place and width are those of a batch against a distribution that is remembered: by how many half
widths its middle is shifted, and the logarithm of what it is stretched by.

References:
    West & Harrison 1997, chapter 4 (regression that forgets by a discount).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from streamdp.learning.experts.arrays import packed, unpacked
from streamdp.learning.experts.distribution import Distribution
from streamdp.types import FloatArray, Json

FIRST = 0.3
"""Deviation of a coefficient before any release."""

ERROR = 0.2
"""Deviation of a batch from what its numbers say."""

DISCOUNT = 0.99
"""What a release counts after the next, in units of that."""

FARTHEST = np.array([6.0, 2.0])
"""Shift and logarithm of a stretch, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """Shift and stretch as linear functions of a batch's inputs.

    Args:
        products: Σ x·xᵀ of past inputs and the precision before them, shape (d, d).
        moments: Σ x·yᵀ, shape (d, 2).
    """

    products: FloatArray
    moments: FloatArray

    @classmethod
    def start(cls, count: int) -> Self:
        """Before any release, for so many inputs."""
        return cls(np.eye(count) * (ERROR / FIRST) ** 2, np.zeros((count, 2)))

    def moved(self, usual: Distribution, inputs: FloatArray) -> Distribution:
        """The distribution that batches with these inputs have."""
        each = inputs @ np.linalg.solve(self.products, self.moments)
        shift, stretch = each.clip(-FARTHEST, FARTHEST).tolist()
        return usual.moved(shift, stretch)

    def learned(self, usual: Distribution, inputs: FloatArray, found: Distribution) -> Regression:
        """After one more batch.

        Args:
            usual: What its place and width are counted from.
            inputs: Of the batch, shape (d,).
            found: Its believed distribution.
        """
        each = np.array(found.against(usual)).clip(-FARTHEST, FARTHEST)
        first = np.eye(len(inputs)) * (ERROR / FIRST) ** 2
        return Regression(
            first + DISCOUNT * (self.products - first) + np.outer(inputs, inputs),
            DISCOUNT * self.moments + np.outer(inputs, each),
        )

    def to_json(self) -> Json:
        """Exact."""
        return {"products": packed(self.products), "moments": packed(self.moments)}

    @classmethod
    def from_json(cls, state: Json) -> Self:
        """The inverse of `to_json`."""
        return cls(unpacked(state["products"]), unpacked(state["moments"]))
