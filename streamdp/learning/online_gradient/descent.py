"""Online gradient descent on the censored-regression surrogate, at intervals that releases show.

The prior of quantile j is Laplace((W_j·f)/φ_j, 1/φ_j), f the public features of the batch, a one
first. A release shows that the quantile lies in an interval [a_j, b_j]; the loss of the prior is
U_j = -ln of the mass that it gives to that interval, convex in (W_j, φ_j).

References:
    Khodak et al. 2023, section 4 (the surrogate; equation 4 is the loss `log-sum-exp`).
    Hazan, Agarwal & Kale 2007 (online Newton steps).
    Duchi, Hazan & Singer 2011 (diagonal AdaGrad); Tieleman & Hinton 2012 (squares that are
    forgotten, so that steps do not vanish on a stream that moves).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np

from streamdp.types import FloatArray, Json


@dataclass(frozen=True, slots=True)
class SurrogateLoss:
    """Losses of m quantiles and their gradients, each of shape (m,)."""

    value: FloatArray
    by_theta: FloatArray
    by_phi: FloatArray

    def gradient(self) -> FloatArray:
        """Gradient of ln Σ_i exp U_i by θ and by φ, shape (m, 2): the worst quantiles lead."""
        shares = np.exp(self.value - self.value.max())
        shares /= shares.sum()
        return np.asarray(np.column_stack((self.by_theta, self.by_phi)) * shares[:, None])


def laplace(
    theta: FloatArray, phi: FloatArray, lower: FloatArray, upper: FloatArray
) -> SurrogateLoss:
    """The surrogate U of a prior's quality: -ln of the mass that it gives to an interval.

    Of a Laplace prior and intervals [lower, upper], lower < upper; all of shape (m,). For a
    location-scale family with log-concave density, θ = location/scale and φ = 1/scale, it is
    jointly convex in (θ, φ): it is censored regression. For m quantiles the loss is ln Σ_i exp U_i,
    convex too.

    With offset u = φ(a + b)/2 - θ and radius r = φ(b - a)/2 the mass is e^-|u|·sinh r outside the
    interval and 1 - e^-r·cosh u inside.

    References:
        Pratt 1981; Burridge 1981 (convexity); Khodak et al. 2023, section 4 (the surrogate).
    """
    offset, radius = phi * (lower + upper) / 2.0 - theta, phi * (upper - lower) / 2.0
    size, sign = np.abs(offset), np.sign(offset)
    outside = size >= radius
    inner = np.minimum(size, radius)
    near, far = np.exp(inner - radius), np.exp(-inner - radius)
    rest = np.maximum(-np.expm1(inner - radius) / 2.0 - np.expm1(-inner - radius) / 2.0, 1e-300)
    log_sinh = radius + np.log(-np.expm1(-2.0 * radius) / 2.0)
    value = np.where(outside, size - log_sinh, -np.log(rest))
    by_offset = sign * np.where(outside, 1.0, (near - far) / 2.0 / rest)
    by_radius = np.where(outside, -1.0 / np.tanh(radius), -(near + far) / 2.0 / rest)
    by_phi = by_offset * (lower + upper) / 2.0 + by_radius * (upper - lower) / 2.0
    return SurrogateLoss(value, -by_offset, by_phi)


CAUTION = 100.0
"""α: first bets are at most a fraction 1/α of what was won."""


def start_betting(shape: tuple[int, ...]) -> Json:
    """First state of coin betting for parameters of a shape."""
    zeros = np.zeros(shape).tolist()
    names = ("lengths", "sum", "reward", "moved")
    return {"largest": np.full(shape, 1e-8).tolist()} | dict.fromkeys(names, zeros)


def bet(gradient: FloatArray, state: Json, at: FloatArray) -> tuple[FloatArray, Json]:
    """Parameters and state after one more gradient, by coin betting (COCOB): no step size.

    Each coordinate bets the reward it has won so far. Parameters and gradients are arrays of one
    shape; states are JSON-ready dictionaries.

    References:
        Orabona & Tommasi 2017, algorithm 2.
    """
    moved = np.array(state["moved"])
    largest = np.maximum(state["largest"], np.abs(gradient))
    lengths = state["lengths"] + np.abs(gradient)
    total = state["sum"] - gradient
    reward = np.maximum(state["reward"] - gradient * moved, 0.0)
    part = total / (largest * np.maximum(lengths + largest, CAUTION * largest))
    new = part * (largest + reward)
    parts = {"largest": largest, "lengths": lengths, "sum": total, "reward": reward, "moved": new}
    return at - moved + new, {name: part.tolist() for name, part in parts.items()}


LossName = Literal["sum", "log-sum-exp"]
StepsName = Literal["newton", "adagrad", "coin-betting"]

FIRST_SCALE = 1.0
"""Scale of a prior before any release, in standardised units."""

SCALES = (1e-3, 1e3)
"""Least and largest scale of a prior, in standardised units."""

SPREADS = 3.0, 0.5
"""Deviations before any release, in standardised units: of a constant, and of an effect."""

INFORMATION = 0.9, 0.99
"""Discount a release of the information on the constants, and on the effects."""

SCALE_RATE, STEEPEST = 0.03, 2.0
"""Step of the logarithm of a scale, late, and the most that one release counts in it."""

RATE = 0.5
"""Length of the first step of AdaGrad, in the unit of a standardised coordinate."""

KEEP = 0.98
"""Part of the sum of squares that a further gradient leaves: fifty releases are remembered."""

LOGIT_OF_LAST_DECILE = float(np.log(9.0))
"""ln(.9/.1): the logistic quantile at .9, where the standard normal one is 1.28."""


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """Priors of some quantiles, one gradient step a release.

    AdaGrad takes values that are standardised: about zero, with a spread of about one.

    Args:
        weights: W, shape (l, d).
        inverse_scales: φ, shape (l,).
        loss: Σ U_j, or ln Σ exp U_j, which the worst levels dominate.
        steps: Which rule steps.
        optimizer_state: State of the rule.
        bounds: Least and largest φ.
        last_loss: Σ U_j of the last release under the prior before it.
        total_loss: The sum of these over all releases.
    """

    weights: FloatArray
    inverse_scales: FloatArray
    loss: LossName = "sum"
    steps: StepsName = "newton"
    optimizer_state: Json = field(default_factory=dict)
    bounds: tuple[float, float] = (1.0 / SCALES[1], 1.0 / SCALES[0])
    last_loss: float = 0.0
    total_loss: float = 0.0

    @classmethod
    def start(cls, levels: FloatArray, count: int, loss: LossName, steps: StepsName) -> Self:
        """Return the priors before any release: a logistic law about zero.

        Args:
            levels: Increasing, in (0, 1).
            count: Number d of public features, the one among them.
            loss: Of a release.
            steps: Rule of the steps.
        """
        weights = np.zeros((len(levels), count))
        weights[:, 0] = 1.28 * np.log(levels / (1.0 - levels)) / LOGIT_OF_LAST_DECILE / FIRST_SCALE
        return cls(weights, np.full(len(levels), 1.0 / FIRST_SCALE), loss, steps)

    def locations(self, features: FloatArray) -> FloatArray:
        """Return the location of each prior for a batch with these features, non-decreasing."""
        return np.maximum.accumulate(self.weights @ features / self.inverse_scales)

    @property
    def scales(self) -> FloatArray:
        """Scale of each prior."""
        return 1.0 / self.inverse_scales

    def updated(self, features: FloatArray, lower: FloatArray, upper: FloatArray) -> Descent:
        """Return the priors after one step on the loss of a release.

        Args:
            features: Of the batch, a one first, shape (d,).
            lower: Of the interval in which each quantile lies, shape (l,).
            upper: The same.
        """
        found = laplace(self.weights @ features, self.inverse_scales, lower, upper)
        by = (found.by_theta, found.by_phi) if self.loss == "sum" else found.gradient().T
        loss = float(found.value.sum())
        stepped = self.stepped(features, by[0], by[1])
        return replace(stepped, last_loss=loss, total_loss=self.total_loss + loss)

    def stepped(self, features: FloatArray, by_theta: FloatArray, by_phi: FloatArray) -> Descent:
        """Return the priors after one step along a gradient, wherever it is from.

        Args:
            features: Of the batch, a one first, shape (d,).
            by_theta: Derivative of a loss by each θ_j = W_j·f, shape (l,).
            by_phi: By each φ_j.
        """
        if self.steps == "newton":
            return self._newton(features, by_theta, by_phi)
        at = np.column_stack((self.weights, self.inverse_scales))
        new, optimizer_state = self._step(
            np.column_stack((np.outer(by_theta, features), by_phi)), at
        )
        phi = np.clip(new[:, -1], *self.bounds)
        return replace(
            self, weights=new[:, :-1], inverse_scales=phi, optimizer_state=optimizer_state
        )

    def placed(self, features: FloatArray, locations: FloatArray) -> Descent:
        """Return the priors with constants such that they lie at some places for a batch."""
        weights = self.weights.copy()
        weights[:, 0] += locations * self.inverse_scales - self.weights @ features
        return replace(self, weights=weights)

    def restandardised(self, shift: float, stretch: float) -> Descent:
        """Return the same priors in another unit.

        Args:
            shift: New zero, in the old unit.
            stretch: New unit, in the old one.
        """
        weights = self.weights.copy()
        weights[:, 0] -= self.inverse_scales * shift
        return replace(self, weights=weights, inverse_scales=self.inverse_scales * stretch)

    def _newton(self, features: FloatArray, by_theta: FloatArray, by_phi: FloatArray) -> Descent:
        """The priors after an online Newton step along W, and one along ln φ beside it.

        The matrix of the steps along W is the discounted sum of outer products of gradients, as
        all levels have it on average. A scale steps with locations held, so W moves with it.
        """
        effect = np.minimum(np.arange(len(features)), 1)
        count = int(self.optimizer_state["releases"]) + 1 if self.optimizer_state else 1
        known = (
            self.optimizer_state["information"]
            if self.optimizer_state
            else np.zeros((len(effect),) * 2)
        )
        keep = np.sqrt(np.array(INFORMATION))[effect]
        known = keep[:, None] * known * keep
        known += float((by_theta**2).mean()) * np.outer(features, features)
        first = np.diag(np.array(SPREADS)[effect] ** -2.0)
        matrices = known + first * self.scales[:, None, None] ** 2
        ahead = np.linalg.solve(matrices, np.tile(features[:, None], (len(by_phi), 1, 1)))[..., 0]
        weights = self.weights - ahead * by_theta[:, None]
        slope = self.inverse_scales * by_phi + (self.weights @ features) * by_theta
        rate = max(SCALE_RATE, 0.5 / count)
        phi = self.inverse_scales * np.exp(-rate * np.clip(slope, -1.0, STEEPEST))
        phi = np.clip(phi, *self.bounds)
        weights *= (phi / self.inverse_scales)[:, None]
        optimizer_state = {"information": known, "releases": count}
        return replace(self, weights=weights, inverse_scales=phi, optimizer_state=optimizer_state)

    def _step(self, gradient: FloatArray, at: FloatArray) -> tuple[FloatArray, Json]:
        if self.steps == "coin-betting":
            optimizer_state = self.optimizer_state or start_betting(at.shape)
            return bet(gradient, optimizer_state, at)
        squares = (
            np.array(self.optimizer_state["squares"])
            if self.optimizer_state
            else np.zeros(at.shape)
        )
        squares = KEEP * squares + gradient**2
        new = at - RATE * gradient / np.sqrt(squares + 1e-12)
        return new, {"squares": squares.tolist()}

    def finite(self) -> bool:
        """Return whether no number overflowed."""
        return bool(np.isfinite(self.weights).all() and np.isfinite(self.inverse_scales).all())

    def to_json(self) -> Json:
        """Return a state that `restored` reads exactly."""
        return {
            "weights": self.weights.tolist(),
            "inverse_scales": self.inverse_scales.tolist(),
            "kept": self.optimizer_state,
            "losses": [self.last_loss, self.total_loss],
        }

    def restored(self, state: Json) -> Descent:
        """Return the priors of a state, with the rules of these."""
        last, total = state["losses"]
        return replace(
            self,
            weights=np.array(state["weights"]),
            inverse_scales=np.array(state["inverse_scales"]),
            optimizer_state=state["kept"],
            last_loss=float(last),
            total_loss=float(total),
        )
