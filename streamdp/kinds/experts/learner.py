"""Online learning from noisy losses: AdaHedge over four ways of following experts.

AdaHedge holds its regret whatever the losses are. To follow the least sum of released losses, or
the leader of a posterior, does better where losses are mostly noise and steady; a mixture over
rates of forgetting does where the best expert changes. An outer AdaHedge weighs the four by the
released losses of what they played. The mixture begins behind the others by a multiple of the noise
of one release: where noise is large, it has to show for longer that something changes.

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

BEHIND = 6.0
"""How far the mixture begins behind, in deviations of the noise between experts. Without it, regret
of steady leaders at ε·n = 9 is up to a third larger; twice as much costs a tenth where they change.
"""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The learner after some releases.

    Args:
        inner: AdaHedge over the experts.
        outer: AdaHedge over the ways of following them.
        memories: Of releases, by rate of forgetting.
    """

    inner: Hedge
    outer: Hedge
    memories: Memories

    def to_json(self) -> Json:
        """Numbers alone, as the store keeps them."""
        return {
            "inner": [self.inner.losses.tolist(), self.inner.gap],
            "outer": [self.outer.losses.tolist(), self.outer.gap],
            "memories": self.memories.to_json(),
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
        outer = Hedge(np.array([0.0, 0.0, 0.0, self._behind]))
        return State(Hedge.over(self.leader.experts), outer, Memories.nothing(self.leader))

    def restored(self, state: Json) -> State:
        """The state that `State.to_json` wrote, here or in a version before the mixture.

        Then there were AdaHedge, a leader of all releases and one of late ones. What the first two
        had seen is kept; the mixture begins.
        """
        inner, outer = (Hedge(np.array(state[name][0]), state[name][1]) for name in _HEDGES)
        if len(outer.losses) == len(WAYS):
            return State(inner, outer, Memories.from_json(state["memories"]))
        by_weight, leading, _ = outer.losses.tolist()
        behind = min(by_weight, leading) + self._behind
        outer = Hedge(np.array([by_weight, by_weight, leading, behind]), outer.gap)
        memories = Memories.nothing(self.leader)
        total, weight, squares = state["memories"][0]
        memories.totals[-1], memories.weights[-1], memories.squares[-1] = total, weight, squares
        return State(inner, outer, memories)

    def weights(self, state: State) -> FloatArray:
        """Weight of each expert for the next batch, shape (k,); they sum to one."""
        return np.asarray(state.outer.weights() @ self._players(state))

    def observe(self, state: State, losses: FloatArray) -> State:
        """The state after the released losses of one batch, shape (k,)."""
        played = self._players(state) @ losses
        memories = state.memories.after(self.leader, losses)
        return State(state.inner.observe(losses), state.outer.observe(played), memories)

    def _players(self, state: State) -> FloatArray:
        """Weights of each way of following, shape (4, k), in the order of `WAYS`."""
        weighed, memories = state.inner.weights(), state.memories
        seen = memories if memories.weights[-1] else None
        least = weighed if seen is None else np.eye(self.leader.experts)[weighed.argmax()]
        return np.array([weighed, least, self.leader.weights(seen), memories.leading(self.leader)])

    @property
    def _behind(self) -> float:
        return BEHIND * self.leader.deviation


_HEDGES = ("inner", "outer")

WAYS = (
    ("AdaHedge", "holds its regret whatever the losses are"),
    ("least sum", "follows the least sum of released losses: best where they are mostly noise"),
    ("leader of all releases", "likes experts that are alike: best where losses are steady"),
    ("leader of late", "forgets as fast as releases show it should: best where the best changes"),
)
"""Ways of following experts: names and when each is best."""
