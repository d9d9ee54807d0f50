"""What a release of experts has learned: weights of experts, and of the learners behind them.

From releases and learned states alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from streamdp.kinds.experts.learner import WAYS
from streamdp.types import History, Lesson

if TYPE_CHECKING:
    from streamdp.kinds.experts.kind import Experts

MOST = 20
"""Experts that are shown."""


def lessons(kind: Experts, history: History) -> Iterator[Lesson]:
    """Return what past losses taught."""
    releases = history.state["releases"]
    if not releases:
        return
    state = kind.learner.restored(history.state["learner"])
    weights, chosen = kind.learner.weights(state), history.state.get("chosen")
    averages = state.inner.losses / releases
    order = np.lexsort((averages, -weights))[:MOST].tolist()
    names = kind.losses.rows()
    yield Lesson(
        "Weights of experts for the next batch",
        "average loss: of all releases so far, per expected record. The weights follow from these"
        " losses and their known noise alone; next marks the one that is followed.",
        tuple(
            {
                **names[place],
                "weight": round(float(weights[place]), 4),
                "average loss": float(f"{averages[place]:.4g}"),
                "next": "yes" if place == chosen else "",
            }
            for place in order
        ),
    )
    yield Lesson(
        "Weights of the learners behind them",
        "An outer AdaHedge weighs four ways of learning by the released losses of what they"
        " played.",
        tuple(
            {"learner": name, "weight": round(weight, 4), "meaning": meaning}
            for (name, meaning), weight in zip(WAYS, state.outer.weights().tolist(), strict=True)
        ),
    )
