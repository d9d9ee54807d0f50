"""Experts over the quantiles of all batches: what each remembers, forecasts and learns.

Expert k believes that the quantiles of batch t are

    v_t = C_t·x_t + common_t + own_t,

x_t public inputs of the batch (a 1 first), C_t of shape (m, d). `common` is a move along shift,
stretch and skew of the usual profile, of covariance w²·D_k at each of several `WIDTHS` w; `own` is
what quantiles do beside it (`own`). Levels, the first column of C, drift by `drift`·D_k between
releases and a little on their own. All covariances are full, since a release measures a few of the
quantiles: what it tells of the others follows from them.

References:
    West & Harrison 1997, chapter 16 (dynamic linear models); Shumway & Stoffer 1982 (learning
    covariances by expectation maximisation).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from streamdp.learning.experts.belief.density import Usual
from streamdp.learning.experts.memory.arrays import packed, packed_halves, unpacked, unpacked_halves
from streamdp.learning.experts.memory.forecast import Change, Forecast
from streamdp.types import FloatArray, Json

DRIFTS = (0.0, 0.02, 0.2, 1.0, np.inf)
"""Of experts without inputs: variance by which a level moves between releases, in units of D. The
last one forgets all but where the first draw of the last release fell: it finds a stream that left
all beliefs, which a far draw alone does not show, for it may be noise."""

DRIFT_NAMES = tuple("steady level" if drift == 0.0 else f"drift {drift:g}" for drift in DRIFTS)
"""One a drift, from slow to fast: what a picture shows."""

INFORMED_DRIFTS = (0.0, 0.1)
"""Of experts with inputs."""

BESIDE_DRIFTS = (0.0, 0.1)
"""Of experts on the distance from other groups."""

WIDTHS = np.array([0.05, 0.3, 1.0, 3.0])
"""Deviations of the common move that an expert holds at once, in units of its own."""

FIRST_MOVE = 0.05
"""Deviation of the common move believed at first, in ranks."""

FIRST_COMMON, FIRST_ALONE = 0.5, 0.25
"""Variances of first levels, in squared ranks: of all together, and of each quantile alone."""

FIRST_EFFECT = 0.02
"""Variance of what inputs do, believed at first, in units of that of the levels."""

LARGEST_MOVE = 3.0
"""Bound of D, in ranks: beyond it all that is left to believe is the robust prior."""

ROUND = 0.05
"""Part of D that is alike in all common directions."""

OWN_DRIFT = 0.004
"""Deviation by which a level that drifts moves beside the common directions, in ranks."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Experts that share their inputs.

    Args:
        drifts: Shape (k,).
        coefficients: C, shape (k, m, d).
        uncertainties: Covariance of the coefficients, quantile by quantile, shape (k, m·d, m·d).
        moves: D, shape (k, m, m).
        log_weights: Of experts and widths, shape (k, g).
    """

    drifts: FloatArray
    coefficients: FloatArray
    uncertainties: FloatArray
    moves: FloatArray
    log_weights: FloatArray

    @classmethod
    def start(
        cls,
        values: FloatArray,
        inputs: int,
        usual: Usual,
        known: FloatArray | None = None,
        drifts: tuple[float, ...] | None = None,
    ) -> Self:
        """Before any release.

        Args:
            values: Where quantiles are believed to be, shape (m,).
            inputs: d.
            usual: How a batch looks.
            known: Covariance of what the values are off by, shape (m, m); by default that of a
                guess.
            drifts: Of the experts; by default those that fit the number of inputs.
        """
        drifts = drifts or _drifts(inputs)
        count, size = len(drifts), len(values)
        known = first_covariance(usual) if known is None else known
        coefficients = np.zeros((count, size, inputs))
        coefficients[:, :, 0] = values
        each = np.diag([1.0, *[FIRST_EFFECT] * (inputs - 1)])
        moves = usual.in_values((0.9 + 0.1 * np.eye(size)) * FIRST_MOVE**2)
        return cls(
            np.array(drifts),
            coefficients,
            np.repeat(np.kron(known, each)[None], count, axis=0),
            np.repeat(moves[None], count, axis=0),
            np.zeros((count, len(WIDTHS))),
        )

    def to_json(self) -> Json:
        """Covariances to seven digits, all else exact."""
        return {
            "coefficients": packed(self.coefficients),
            "uncertainties": packed_halves(self.uncertainties),
            "moves": packed_halves(self.moves),
            "log_weights": packed(self.log_weights),
        }

    @classmethod
    def from_json(cls, state: Json, drifts: tuple[float, ...] | None = None) -> Self:
        """The inverse of `to_json`; drifts follow from the number of inputs if not given."""
        coefficients = unpacked(state["coefficients"])
        return cls(
            np.array(drifts or _drifts(coefficients.shape[2])),
            coefficients,
            unpacked_halves(state["uncertainties"]),
            unpacked_halves(state["moves"]),
            unpacked(state["log_weights"]),
        )

    def forecast(self, inputs: FloatArray, own: FloatArray) -> Forecast:
        """Belief before a release; `inputs` begin with 1, shape (d,); `own` is of either kind."""
        count, size, width = self.coefficients.shape
        carried = self.uncertainties.reshape(count, size * width, size, width) @ inputs
        known = np.einsum("d,kadb->kab", inputs, carried.reshape(count, size, width, size))
        spreads = known[:, None] + self._common() + own.sum(axis=0)
        return Forecast(self.coefficients @ inputs, carried, spreads, own)

    def learned(self, change: Change, usual: Usual, rate: float) -> Levels:
        """The experts after one release; weights stay.

        Args:
            change: Of their belief about its batch.
            usual: How a batch looks, this one included.
            rate: Weight of this batch in D.
        """
        shares = change.shares
        gain = change.seen.carried[:, None] @ change.inverse
        moved = (gain @ change.off)[..., 0]
        mean = np.einsum("kg,kga->ka", shares, moved)
        apart = moved - mean[:, None]
        removed = gain @ change.shrunk @ gain.transpose(0, 1, 3, 2)
        uncertainties = self.uncertainties - np.einsum("kg,kgab->kab", shares, removed)
        uncertainties += np.einsum("kg,kga,kgb->kab", shares, apart, apart)
        uncertainties = (uncertainties + uncertainties.transpose(0, 2, 1)) / 2.0
        squares = change.moments(self._common())[0]
        moves = self._moves(np.einsum("kg,kgab->kab", shares, squares), usual, rate)
        coefficients = self.coefficients + mean.reshape(self.coefficients.shape)
        grown = replace(self, coefficients=coefficients, uncertainties=uncertainties, moves=moves)
        return grown.drifted(usual)

    def drifted(self, usual: Usual) -> Levels:
        """The experts one batch later: the levels have moved."""
        size, width = self.coefficients.shape[1:]
        own = np.diag(usual.in_values(np.eye(size))) * OWN_DRIFT**2
        away = np.where(self.drifts > 0.0, 1.0, 0.0)[:, None] * own + (usual.resolution / 10) ** 2
        steps = np.where(np.isinf(self.drifts), 0.0, self.drifts)
        level = steps[:, None, None] * self.moves + away[:, :, None] * np.eye(size)
        uncertainties = self.uncertainties.copy()
        uncertainties[:, ::width, ::width] += level
        return replace(self, uncertainties=uncertainties)

    def anchored(self, places: FloatArray, usual: Usual) -> Levels:
        """The same where the forgetful expert expects quantiles at some places, shape (m,)."""
        last = np.isinf(self.drifts)
        if not last.any():
            return self
        coefficients, uncertainties = self.coefficients.copy(), self.uncertainties.copy()
        coefficients[last, :, 0] = places
        uncertainties[last] = first_covariance(usual)
        return replace(self, coefficients=coefficients, uncertainties=uncertainties)

    def finite(self) -> bool:
        """Whether no number overflowed."""
        numbers = self.coefficients, self.uncertainties, self.moves, self.log_weights
        return all(np.isfinite(part).all() for part in numbers)

    def _common(self) -> FloatArray:
        return np.asarray((WIDTHS**2)[:, None, None] * self.moves[:, None])

    def _moves(self, seen: FloatArray, usual: Usual, rate: float) -> FloatArray:
        """D moves towards what was seen along the common directions."""
        smooth = usual.common @ usual.in_ranks(seen) @ usual.common
        rank = max(round(float(np.trace(usual.common))), 1)
        alike = np.trace(smooth, axis1=1, axis2=2)[:, None, None] / rank * usual.common
        new = (1.0 - rate) * self.moves
        new += rate * usual.in_values((1.0 - ROUND) * smooth + ROUND * alike)
        sizes = np.einsum("kii,i->k", new, usual.density**2) / new.shape[1]
        bounded = np.minimum(1.0, LARGEST_MOVE**2 / np.maximum(sizes, 1e-300))
        return np.asarray(new * bounded[:, None, None])


def first_covariance(usual: Usual) -> FloatArray:
    """Covariance of levels of which nothing is known but a guess, shape (m, m)."""
    return usual.in_values(FIRST_COMMON + FIRST_ALONE * np.eye(len(usual.density)))


def _drifts(inputs: int) -> tuple[float, ...]:
    return DRIFTS if inputs == 1 else INFORMED_DRIFTS
