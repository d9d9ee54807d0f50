"""Filters over the quantiles of all batches: what each expert remembers, forecasts and learns.

Expert k believes v_t = C_t·f_t + deviation, with public features f_t (a constant first), day-to-day
deviations of covariance D, and levels that drift by `DRIFTS[k]`·D between releases; the last one
forgets everything but the last release, and has no place among filters of features. Coefficients
are matrix-normal with covariance D ⊗ R, so the forecast is Normal(C·f, (w² + f'Rf)·D), and each
expert holds it at several `WIDTHS` w. Bayes weighs experts and widths by the evidence of each
release; a share of the weight returns to all, so that the best may change.

References:
    West & Harrison 1997, chapter 16 (matrix-normal dynamic linear models); Herbster & Warmuth 1998
    (fixed share); Shumway & Stoffer 1982 (learning covariances by expectation maximisation).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from streamdp.learning import spacing
from streamdp.learning.belief import Belief
from streamdp.types import FloatArray, Json

DRIFTS = np.array([0.0, 0.03, 0.3, np.inf])
"""Variance by which a level moves between releases, in units of D; infinite: the last release."""

WIDTHS = np.array([0.1, 0.3, 1.0, 3.0, 10.0])
"""Standard deviations an expert holds at once, in units of its own."""

FIRST_DEVIATION = 0.05
"""Day-to-day deviation believed at first, in ranks."""

FIRST_UNCERTAINTY = 400.0
"""Variance of coefficients believed at first, in units of D: one full rank."""

LARGEST_DEVIATION = 3.0
"""Bound of D, in ranks: beyond it all that is left to believe is the robust prior."""

PUBLIC_UNCERTAINTY = 25.0
"""The same of levels fitted to public rows: a quarter of the ranks."""

SHARE = 0.05
"""Weight that is spread over all experts and widths after each release."""

FORGET = 0.03
"""Least weight of a new release in D."""

TIED = 0.3
"""Part of D that keeps the form of common moves."""

SPACING_RATE = 0.1
"""Least weight of a new release in the spacing."""

FAILED = 1e-4
"""An expert of less weight starts again from the best one."""


@dataclass(frozen=True, slots=True)
class Filters:
    """All that is remembered of past releases; k experts, g widths, m quantiles, d features.

    Args:
        releases: How many were learned from.
        log_weights: Shape (k, g).
        coefficients: C, shape (k, m, d).
        uncertainties: R, shape (k, d, d).
        deviations: D, shape (k, m, m).
        log_gaps: Spacing of the quantiles (`spacing`), shape (m,).
    """

    releases: int
    log_weights: FloatArray
    coefficients: FloatArray
    uncertainties: FloatArray
    deviations: FloatArray
    log_gaps: FloatArray

    @classmethod
    def start(
        cls,
        targets: FloatArray,
        values: FloatArray,
        scale: float,
        features: int,
        resolution: float,
        uncertainty: float = FIRST_UNCERTAINTY,
    ) -> Self:
        """Before any release.

        Args:
            targets: Quantiles, shape (m,).
            values: Where they are believed to be, shape (m,).
            scale: Spread of the column; needed where one quantile alone shows none.
            features: Number of public features.
            resolution: Width of a cell.
            uncertainty: Variance of the levels, in units of D.
        """
        experts, size = len(DRIFTS) - bool(features), len(targets)
        log_gaps = spacing.log_gaps(values, resolution)
        if size == 1:
            log_gaps = np.array([np.log(4.0 * spacing.GUESS_SPREAD * scale)])
        moves = spacing.common_moves(spacing.densities(targets, log_gaps)) * FIRST_DEVIATION**2
        coefficients = np.zeros((experts, size, 1 + features))
        coefficients[:, :, 0] = values
        uncertainties = np.repeat(np.eye(1 + features)[None] * FIRST_UNCERTAINTY, experts, 0)
        uncertainties[:, 0, 0] = uncertainty
        deviations = np.repeat(moves[None], experts, 0)
        log_weights = np.zeros((experts, len(WIDTHS)))
        return cls(0, log_weights, coefficients, uncertainties, deviations, log_gaps)

    def to_json(self) -> Json:
        """Exact; symmetric matrices by their lower half."""
        lower = np.tril_indices(self.deviations.shape[1])
        half = np.tril_indices(self.uncertainties.shape[1])
        return {
            "releases": self.releases,
            "log_weights": self.log_weights.tolist(),
            "coefficients": self.coefficients.tolist(),
            "uncertainties": self.uncertainties[:, half[0], half[1]].tolist(),
            "deviations": self.deviations[:, lower[0], lower[1]].tolist(),
            "log_gaps": self.log_gaps.tolist(),
        }

    @classmethod
    def from_json(cls, state: Json) -> Self:
        """The inverse of `to_json`."""
        coefficients = np.array(state["coefficients"], dtype=np.float64)
        return cls(
            int(state["releases"]),
            np.array(state["log_weights"], dtype=np.float64),
            coefficients,
            _symmetric(np.array(state["uncertainties"]), coefficients.shape[2]),
            _symmetric(np.array(state["deviations"]), coefficients.shape[1]),
            np.array(state["log_gaps"], dtype=np.float64),
        )

    def forecast(self, features: FloatArray) -> Belief:
        """What is believed before a release; `features` begin with 1, shape (d,)."""
        covariances = self.scales(features)[:, :, None, None] * self.deviations[:, None]
        size = self.coefficients.shape[1]
        means = np.repeat(self.coefficients @ features, len(WIDTHS), axis=0)
        return Belief(self.log_weights.ravel(), means, covariances.reshape(-1, size, size))

    def scales(self, features: FloatArray) -> FloatArray:
        """Variance of each expert's forecasts at each width, in units of D, shape (k, g).

        Coefficients are as uncertain at every width.
        """
        return np.asarray(WIDTHS**2 + self.known(features)[:, None])

    def known(self, features: FloatArray) -> FloatArray:
        """Variance with which each expert knows the level of a batch, in units of D, shape (k,)."""
        return np.asarray(np.einsum("i,kij,j->k", features, self.uncertainties, features))

    @property
    def level_only(self) -> bool:
        """Whether there are no features."""
        return bool(self.coefficients.shape[2] == 1)

    def finite(self) -> bool:
        """Whether no number overflowed."""
        numbers = self.coefficients, self.uncertainties, self.deviations, self.log_weights
        return all(np.isfinite(part).all() for part in numbers)

    def with_features(self, count: int) -> Self:
        """The same with another number of features: levels stay, other coefficients start anew."""
        experts, size, known = self.coefficients.shape
        if known == count + 1:
            return self
        coefficients = np.zeros((experts, size, count + 1))
        coefficients[:, :, 0] = self.coefficients[:, :, 0]
        fresh = np.eye(count + 1) * FIRST_UNCERTAINTY
        uncertainties = np.repeat(fresh[None], experts, axis=0)
        return replace(self, coefficients=coefficients, uncertainties=uncertainties)

    def without_last(self) -> Self:
        """All experts but the one of the last release."""
        kept = self.drifts < np.inf
        return replace(
            self,
            log_weights=self.log_weights[kept],
            coefficients=self.coefficients[kept],
            uncertainties=self.uncertainties[kept],
            deviations=self.deviations[kept],
        )

    @property
    def drifts(self) -> FloatArray:
        """Of each expert, shape (k,)."""
        return DRIFTS[: len(self.coefficients)]


def _symmetric(halves: FloatArray, size: int) -> FloatArray:
    full = np.zeros((len(halves), size, size))
    rows, columns = np.tril_indices(size)
    full[:, rows, columns] = halves
    full[:, columns, rows] = halves
    return full
