"""Online learning from noisy losses: AdaHedge over several ways of following experts.

AdaHedge holds its regret whatever the losses are. To follow the least sum of released losses, or
the leader of a posterior, does better where losses are mostly noise and steady; a mixture over
rates of forgetting, or one of its faster rates alone, does where the best expert changes. An outer
AdaHedge weighs the ways by the released losses of what they played. What forgets has to gain more
on the least sum than chance would: where noise is large, it has to show for longer that something
changes.

Reads releases alone: post-processing, no privacy cost. Released losses have the true ones as their
mean and the weights are fixed before them, so what is held on released losses is held on true ones
in expectation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamdp.types import FloatArray, Json

SIZES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Standard deviations τ of the experts' mean losses, in those of the noise of one release."""

_JITTER = 1e-8
"""Added to the diagonal of a matrix that may be singular, as a part of its size."""

_LEAST = 1e-12
"""Variance of noise between experts: where a price leaves next to none, it is taken to be this."""


@dataclass(frozen=True, slots=True, eq=False)
class Leader:
    """Follow the expert that leads under a posterior: for losses that are mostly noise.

    The mean losses of k experts are believed Gaussian around a common level, with covariance
    τ²·K_w: experts whose parameters are alike have losses that are alike. Released losses are the
    true ones plus noise of a known covariance C. A grid of widths w and sizes τ is averaged by how
    well each explains the released means. The weight goes to the expert of the least posterior
    mean. Only contrasts between experts are looked at: what all experts lose together says nothing.

    A likeness has coordinates of its own, where the noise is white and priors are diagonal. Each
    has a prior of each of `SIZES`.

    Args:
        whiten: Into these coordinates, shape (h, k - 1, k).
        restore: Back to losses but for their level, shape (h, k, k - 1).
        variances: Of the priors there, shape (h, s, k - 1).
    """

    whiten: FloatArray
    restore: FloatArray
    variances: FloatArray

    @property
    def experts(self) -> int:
        """How many there are."""
        return int(self.whiten.shape[2])

    @classmethod
    def of(cls, kernels: Sequence[FloatArray], noise: FloatArray) -> Leader:
        """A leader for experts of these likenesses under this noise.

        Args:
            kernels: Correlations between experts, each of shape (k, k).
            noise: Covariance C of one release's losses, shape (k, k).
        """
        experts = len(noise)
        contrasts = _contrasts(experts)
        between = contrasts.T @ noise @ contrasts
        variance = max(float(np.trace(between) / (experts - 1)), _LEAST)
        white = np.linalg.cholesky(between + _JITTER * variance * np.eye(experts - 1))
        inverse = np.linalg.inv(white)
        whiten, restore, spread = [], [], []
        for kernel in kernels:
            alike = contrasts.T @ (kernel + _JITTER * np.eye(experts)) @ contrasts
            variances, axes = np.linalg.eigh(inverse @ alike @ inverse.T)
            whiten += [axes.T @ inverse @ contrasts.T]
            restore += [contrasts @ white @ axes]
            spread += [variance * np.square(SIZES)[:, None] * variances.clip(0.0)]
        return cls(np.array(whiten), np.array(restore), np.array(spread))

    def weights(self, seen: Memories | None) -> FloatArray:
        """All weight on the expert that leads; the same for all before anything was seen."""
        if seen is None:
            return np.full(self.experts, 1.0 / self.experts)
        white = (self.whiten @ seen.mean)[:, None]
        total = self.variances + seen.noise
        evidence = -0.5 * (white * white / total + np.log(total)).sum(axis=2)
        shares = np.exp(evidence - evidence.max())
        shares /= shares.sum()
        return self.first((shares[:, :, None] * self.variances / total * white).sum(axis=1))

    def noise_of(self, differences: FloatArray) -> FloatArray:
        """Variance of the noise that a release has in differences of weighted losses.

        Args:
            differences: Weights that sum to nought, shape (m, k).
        """
        return np.asarray(np.square(differences @ self.restore[0]).sum(axis=1))

    def first(self, believed: FloatArray) -> FloatArray:
        """All weight on the expert of the least loss.

        Args:
            believed: Means in the coordinates of each likeness, by its weight; shape (h, k - 1).
        """
        losses = (self.restore @ believed[:, :, None])[:, :, 0].sum(axis=0)
        weights = np.zeros(self.experts)
        weights[int(losses.argmin())] = 1.0
        return weights


def _contrasts(experts: int) -> FloatArray:
    """An orthonormal basis of the vectors that sum to nought, shape (k, k - 1)."""
    centred = np.eye(experts) - 1.0 / experts
    return np.asarray(np.linalg.svd(centred)[0][:, : experts - 1])


@dataclass(frozen=True, slots=True, eq=False)
class Hedge:
    """AdaHedge: weights over experts whose rate of learning follows from the losses so far.

        w_i ∝ e^(-η·L_i),  η = ln k / Δ,  Δ = Σ_t (w_t·ℓ_t - m_t),
        m = -(1/η)·ln Σ_i w_i e^(-η·ℓ_i)

    L_i are cumulative losses, Δ is the cumulative mixability gap. Losses may have any size and
    sign, so noisy ones are admitted, and neither a horizon nor a range is needed.

    References:
        De Rooij, van Erven, Grünwald & Koolen 2014: regret ≤ 2·Δ.

    Args:
        losses: Cumulative loss of each expert, shape (k,).
        gap: Cumulative mixability gap Δ, at least 0.
    """

    losses: FloatArray
    gap: float = 0.0

    @classmethod
    def over(cls, experts: int) -> Hedge:
        """The state before any loss: all experts weigh the same."""
        return cls(np.zeros(experts))

    def weights(self) -> FloatArray:
        """Weight of each expert for the next loss, shape (k,); they sum to one."""
        if self.gap == 0.0:
            leading = (self.losses == self.losses.min()).astype(float)
            return np.asarray(leading / leading.sum())
        behind = self.losses - self.losses.min()
        weights = np.exp(-self._rate() * behind)
        return np.asarray(weights / weights.sum())

    def observe(self, losses: FloatArray) -> Hedge:
        """The state after one more loss of each expert, shape (k,)."""
        played = float(self.weights() @ losses)
        after = self.losses + losses
        mixed = self._mixed(after) - self._mixed(self.losses)
        return Hedge(after, self.gap + max(played - mixed, 0.0))

    def _mixed(self, losses: FloatArray) -> float:
        """Mix loss -(1/η)·ln Σ e^(-η·L_i), whose increments are those of the weighted experts."""
        least = float(losses.min())
        if self.gap == 0.0:
            return least
        rate = self._rate()
        return least - math.log(float(np.exp(-rate * (losses - least)).sum())) / rate

    def _rate(self) -> float:
        return math.log(max(len(self.losses), 2)) / self.gap


RATES = np.array([0.0, *(2.0 ** (-1.0 / releases) for releases in (1, 2, 4, 8, 16, 32)), 1.0])
"""Factors of the weight of old releases at each new one."""

SHARED = 0.02
"""Share of each prior's weight that goes to all rates alike at each release."""

ANY = 0.001
"""Share of all weight that goes to all rates and priors alike."""

FASTER = 5
"""So many of the first rates are ways of their own."""

FREEDOM = 4.0
"""Degrees of freedom of the law by which releases weigh beliefs: batches differ by more than by
noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Memories:
    """Follow the expert that leads now: a mixture over how fast old releases are forgotten.

    Each rate γ of forgetting, with each prior of `Leader`, is a belief about the next losses: those
    of a discounted mean of the releases so far, with what its noise and the prior leave open. A
    release weighs these beliefs by how well they foretold it. A share goes back to all rates at
    each release, so that after a jump of the best expert the rates that remember little take over
    within a day, and longer memories once they hold nothing else.

    References:
        Raftery, Kárný & Ettler 2010 (dynamic model averaging).
        Herbster & Warmuth 1998 (fixed share).

    Args:
        totals: Σ γ^age·y, shape (r, k).
        weights: Σ γ^age, shape (r,).
        squares: Σ γ^(2·age), shape (r,).
        shares: Weights of rates and priors, shape (r, h, s); they sum to one.
    """

    totals: FloatArray
    weights: FloatArray
    squares: FloatArray
    shares: FloatArray

    @classmethod
    def nothing(cls, leader: Leader) -> Memories:
        """Return the memory before any release, in which all beliefs weigh the same."""
        shape = len(RATES), *leader.variances.shape[:2]
        shares, zeros = np.full(shape, 1.0 / np.prod(shape)), np.zeros(len(RATES))
        return cls(np.zeros((len(RATES), leader.experts)), zeros, zeros, shares)

    @property
    def mean(self) -> FloatArray:
        """Mean of all releases alike, shape (k,)."""
        return np.asarray(self.totals[-1] / self.weights[-1])

    @property
    def noise(self) -> float:
        """Variance of that mean over that of one release."""
        return float(self.squares[-1] / self.weights[-1] ** 2)

    def to_json(self) -> Json:
        """Numbers alone, as the store keeps them."""
        arrays = (self.totals, self.weights, self.squares, self.shares)
        return [array.tolist() for array in arrays]

    @classmethod
    def from_json(cls, state: Json) -> Memories:
        """The inverse of `to_json`."""
        return cls(*(np.array(array, dtype=float) for array in state))

    def leading(self, leader: Leader) -> FloatArray:
        """All weight on the expert that leads: under all rates, then under each of the faster ones.

        The same for all before anything was seen. The mixture foretells the losses of all experts;
        which is best can be told by a rate that foretells them worse.
        """
        if not self.weights.any():
            return np.full((1 + FASTER, leader.experts), 1.0 / leader.experts)
        means = self.shares[..., None] * self._believed(leader)[0]
        alone = means[:FASTER].sum(axis=2) / self.shares[:FASTER].sum(axis=(1, 2))[:, None, None]
        return np.array([leader.first(each) for each in (means.sum(axis=(0, 2)), *alone)])

    def after(self, leader: Leader, losses: FloatArray) -> Memories:
        """Update the memories after the released losses of one more batch, shape (k,)."""
        means, open_ = self._believed(leader)
        off = (leader.whiten @ losses)[:, None] - means
        variances, size = open_ + 1.0, off.shape[-1]
        far = (off * off / variances).sum(axis=-1) / FREEDOM
        logs = np.log(self.shares) - 0.5 * (FREEDOM + size) * np.log1p(far)
        logs -= 0.5 * np.log(variances).sum(axis=-1)
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        shares = (1.0 - SHARED) * shares + SHARED * shares.sum(axis=0) / len(RATES)
        return Memories(
            RATES[:, None] * self.totals + losses,
            RATES * self.weights + 1.0,
            RATES**2 * self.squares + 1.0,
            (1.0 - ANY) * shares + ANY / shares.size,
        )

    def _believed(self, leader: Leader) -> tuple[FloatArray, FloatArray]:
        """Means and variances of the losses under each rate and prior, shape (r, h, s, k - 1).

        What a rate has not seen is as the prior says.
        """
        weights = np.where(self.weights > 0.0, self.weights, 1.0)[:, None, None, None]
        white = np.moveaxis(leader.whiten @ self.totals.T, 2, 0)[:, :, None] / weights
        seen = (self.weights > 0.0)[:, None, None, None]
        noise = np.where(seen, self.squares[:, None, None, None] / weights**2, 1.0)
        left = leader.variances / (leader.variances + noise)
        means = np.where(seen, left * white, 0.0)
        return means, np.where(seen, left * noise, leader.variances)


CAUTION = np.array([0.0, 0.0, 0.34, *[0.87] * (1 + FASTER)])
"""Deviations by which each way has to gain on the least sum. Without them, regret of steady leaders
at ε·n = 9 is half larger; twice as many cost a fifth where they change."""

NOISE = 4.0
"""Variances of noise that are added to the square of a gain: gains that are noise alone are charged
more than twice as much as gains without any."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The learner after some releases.

    Args:
        inner: AdaHedge over the experts.
        outer: AdaHedge over the ways of following them.
        memories: Of releases, by rate of forgetting.
        unsure: Variance of what each way has gained on the least sum, shape (ways,).
    """

    inner: Hedge
    outer: Hedge
    memories: Memories
    unsure: FloatArray

    def to_json(self) -> Json:
        """Numbers alone, as the store keeps them."""
        return {
            "inner": [self.inner.losses.tolist(), self.inner.gap],
            "outer": [self.outer.losses.tolist(), self.outer.gap],
            "memories": self.memories.to_json(),
            "unsure": self.unsure.tolist(),
        }


@dataclass(frozen=True, slots=True, eq=False)
class OnlineLearner:
    """Weights over experts from their released losses.

    Args:
        leader: Posterior for the experts' likeness and the noise of one release.
    """

    leader: Leader

    def start(self) -> State:
        """The state before any release."""
        inner, outer = Hedge.over(self.leader.experts), Hedge.over(len(WAYS))
        return State(inner, outer, Memories.nothing(self.leader), np.zeros(len(WAYS)))

    def restored(self, state: Json) -> State:
        """The state that `State.to_json` wrote, here or in an earlier version.

        Before the mixture there were AdaHedge, a leader of all releases and one of late ones. What
        the first two had seen is kept; the mixture begins. Later the variance of gains was not
        kept, and the mixture was the last of the ways: those after it begin where it is.
        """
        inner, outer = (Hedge(np.array(state[name][0]), state[name][1]) for name in _HEDGES)
        if len(outer.losses) > _BEFORE_MIXTURE:
            outer = Hedge(_padded(outer.losses), outer.gap)
            unsure = _padded(np.array(state.get("unsure", np.zeros(len(WAYS)))))
            return State(inner, outer, Memories.from_json(state["memories"]), unsure)
        by_weight, leading, _ = outer.losses.tolist()
        ways = [by_weight, by_weight, leading, min(by_weight, leading)]
        outer = Hedge(_padded(np.array(ways)), outer.gap)
        memories = Memories.nothing(self.leader)
        total, weight, squares = state["memories"][0]
        memories.totals[-1], memories.weights[-1], memories.squares[-1] = total, weight, squares
        return State(inner, outer, memories, np.zeros(len(WAYS)))

    def weights(self, state: State) -> FloatArray:
        """Weight of each expert for the next batch, shape (k,); they sum to one."""
        return np.asarray(state.outer.weights() @ self._players(state))

    def observe(self, state: State, losses: FloatArray) -> State:
        """The state after the released losses of one batch, shape (k,)."""
        players = self._players(state)
        gained = players - players[_LEAST_SUM]
        noise = self.leader.noise_of(gained)
        unsure = state.unsure + np.square(gained @ losses) + NOISE * noise
        charged = CAUTION * (np.sqrt(unsure) - np.sqrt(state.unsure))
        outer = state.outer.observe(players @ losses + charged)
        memories = state.memories.after(self.leader, losses)
        return State(state.inner.observe(losses), outer, memories, unsure)

    def _players(self, state: State) -> FloatArray:
        """Weights of each way of following, shape (ways, k), in the order of `WAYS`."""
        weighed, memories = state.inner.weights(), state.memories
        seen = memories if memories.weights[-1] else None
        least = weighed if seen is None else np.eye(self.leader.experts)[weighed.argmax()]
        steady = weighed, least, self.leader.weights(seen)
        return np.array([*steady, *memories.leading(self.leader)])


def _padded(ways: FloatArray) -> FloatArray:
    """Numbers of the ways of an earlier version; those that it had not are like its last."""
    return np.pad(ways, (0, len(WAYS) - len(ways)), mode="edge")


_HEDGES = ("inner", "outer")

_LEAST_SUM, _BEFORE_MIXTURE = 1, 3

WAYS = (
    ("AdaHedge", "holds its regret whatever the losses are"),
    ("least sum", "follows the least sum of released losses: best where they are mostly noise"),
    ("leader of all releases", "likes experts that are alike: best where losses are steady"),
    ("leader of late", "forgets as fast as releases show it should: best where the best changes"),
    *(
        (f"leader of late, memory {1.0 / (1.0 - rate):.0f}", "forgets after so many releases")
        for rate in RATES[:FASTER].tolist()
    ),
)
"""Ways of following experts: names and when each is best."""
