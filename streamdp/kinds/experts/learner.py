"""Online learning from noisy losses: AdaHedge over four ways of following experts.

AdaHedge holds its regret whatever the losses are. To follow the least sum of released losses, or
the leader of a posterior, does better where losses are mostly noise and steady; a mixture over
rates of forgetting does where the best expert changes. An outer AdaHedge weighs the four by the
released losses of what they played. Either leader is charged the noise of what it has gained on the
least sum so far: where noise is large, it has to show for longer that it is better.

Reads releases alone: post-processing, no privacy cost. Released losses have the true ones as their
mean and the weights are fixed before them, so what is held on released losses is held on true ones
in expectation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.kinds.experts.forgetting import Memories
from streamdp.kinds.experts.hedge import Hedge
from streamdp.kinds.experts.leader import Leader
from streamdp.types import FloatArray, Json

CAUTION = np.array([0.0, 0.0, 0.75, 1.5])
"""Deviations of noise by which each way has to gain on the least sum. Without them, regret of
steady leaders at ε·n = 9 is up to half larger; twice as many cost a tenth where they change."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The learner after some releases.

    Args:
        inner: AdaHedge over the experts.
        outer: AdaHedge over the ways of following them.
        memories: Of releases, by rate of forgetting.
        unsure: Variance of the noise in what each way has gained on the least sum, shape (4,).
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
        the first two had seen is kept; the mixture begins. Later the noise of gains was not kept.
        """
        inner, outer = (Hedge(np.array(state[name][0]), state[name][1]) for name in _HEDGES)
        if len(outer.losses) == len(WAYS):
            unsure = np.array(state.get("unsure", np.zeros(len(WAYS))))
            return State(inner, outer, Memories.from_json(state["memories"]), unsure)
        by_weight, leading, _ = outer.losses.tolist()
        ways = [by_weight, by_weight, leading, min(by_weight, leading)]
        outer = Hedge(np.array(ways), outer.gap)
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
        unsure = state.unsure + self.leader.noise_of(players - players[_LEAST_SUM])
        charged = CAUTION * (np.sqrt(unsure) - np.sqrt(state.unsure))
        outer = state.outer.observe(players @ losses + charged)
        memories = state.memories.after(self.leader, losses)
        return State(state.inner.observe(losses), outer, memories, unsure)

    def _players(self, state: State) -> FloatArray:
        """Weights of each way of following, shape (4, k), in the order of `WAYS`."""
        weighed, memories = state.inner.weights(), state.memories
        seen = memories if memories.weights[-1] else None
        least = weighed if seen is None else np.eye(self.leader.experts)[weighed.argmax()]
        return np.array([weighed, least, self.leader.weights(seen), memories.leading(self.leader)])


_HEDGES = ("inner", "outer")

_LEAST_SUM = 1

WAYS = (
    ("AdaHedge", "holds its regret whatever the losses are"),
    ("least sum", "follows the least sum of released losses: best where they are mostly noise"),
    ("leader of all releases", "likes experts that are alike: best where losses are steady"),
    ("leader of late", "forgets as fast as releases show it should: best where the best changes"),
)
"""Ways of following experts: names and when each is best."""
