"""Online learning from noisy losses: AdaHedge beside posterior leaders, weighed by AdaHedge again.

AdaHedge holds its regret whatever the losses are. A leader under a posterior does better where the
losses are mostly noise and steady, and one with a short memory where the best expert changes. An
outer AdaHedge weighs the three by the released losses of what they played.

Reads releases alone: post-processing, no privacy cost. Released losses have the true ones as their
mean and the weights are fixed before them, so what is held on released losses is held on true ones
in expectation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.kinds.experts.hedge import Hedge
from streamdp.kinds.experts.leader import Leader
from streamdp.types import FloatArray, Json

MEMORIES = (1.0, 2.0 ** (-1.0 / 30.0))
"""By what a leader multiplies the weight of old releases at each new one."""


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Discounted sums of released losses.

    Args:
        total: Σ γ^age·y, shape (k,).
        weight: Σ γ^age.
        squares: Σ γ^(2·age).
    """

    total: FloatArray
    weight: float
    squares: float

    @property
    def mean(self) -> FloatArray:
        """Weighted mean of the released losses, shape (k,)."""
        return self.total / self.weight

    @property
    def noise(self) -> float:
        """Variance of the mean over that of one release."""
        return self.squares / self.weight**2


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The learner after some releases.

    Args:
        inner: AdaHedge over the experts.
        outer: AdaHedge over AdaHedge and the leaders.
        memories: One a leader.
    """

    inner: Hedge
    outer: Hedge
    memories: tuple[Memory, ...]

    def to_json(self) -> Json:
        """Numbers alone, as the store keeps them."""
        return {
            "inner": [self.inner.losses.tolist(), self.inner.gap],
            "outer": [self.outer.losses.tolist(), self.outer.gap],
            "memories": [[m.total.tolist(), m.weight, m.squares] for m in self.memories],
        }

    @classmethod
    def from_json(cls, state: Json) -> State:
        """The state that `to_json` wrote."""
        inner, outer = (Hedge(np.array(state[name][0]), state[name][1]) for name in _HEDGES)
        memories = (Memory(np.array(total), *rest) for total, *rest in state["memories"])
        return cls(inner, outer, tuple(memories))


_HEDGES = ("inner", "outer")


@dataclass(frozen=True, slots=True, eq=False)
class OnlineLearner:
    """Weights over experts from their released losses.

    Args:
        leader: Posterior for the experts' likeness and the noise of one release.
    """

    leader: Leader

    def start(self) -> State:
        """The state before any release."""
        experts = self.leader.experts
        empty = Memory(np.zeros(experts), 0.0, 0.0)
        players = 1 + len(MEMORIES)
        return State(Hedge.over(experts), Hedge.over(players), (empty,) * len(MEMORIES))

    def weights(self, state: State) -> FloatArray:
        """Weight of each expert for the next batch, shape (k,); they sum to one."""
        return np.asarray(state.outer.weights() @ self._players(state))

    def observe(self, state: State, losses: FloatArray) -> State:
        """The state after the released losses of one batch, shape (k,)."""
        played = self._players(state) @ losses
        memories = tuple(
            Memory(keep * m.total + losses, keep * m.weight + 1.0, keep**2 * m.squares + 1.0)
            for keep, m in zip(MEMORIES, state.memories, strict=True)
        )
        return State(state.inner.observe(losses), state.outer.observe(played), memories)

    def _players(self, state: State) -> FloatArray:
        """Weights of AdaHedge and of each leader, shape (players, k)."""
        leaders = [self.leader.weights(m if m.weight else None) for m in state.memories]
        return np.array([state.inner.weights(), *leaders])
