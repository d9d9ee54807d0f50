"""How much the experts are trusted by how fast they let levels move: what a picture shows."""

from __future__ import annotations

import numpy as np

from streamdp.learning.experts.levels import DRIFTS
from streamdp.learning.experts.panel import Panel
from streamdp.types import FloatArray, Json


def drift_names() -> tuple[str, ...]:
    """One name a drift, from slow to fast."""
    return tuple("steady level" if drift == 0.0 else f"drift {drift:g}" for drift in DRIFTS)


def drift_shares(state: Json) -> FloatArray:
    """Weights of the experts of each drift, whatever their inputs, shape (k,).

    Args:
        state: Of the experts, from releases alone; equal weights before any.
    """
    if not state:
        return np.full(len(DRIFTS), 1.0 / len(DRIFTS))
    summed = np.zeros(len(DRIFTS))
    for group in Panel.from_json(state).groups:
        weights = np.exp(group.log_weights).sum(axis=1)
        summed[: len(weights)] += weights
    return np.asarray(summed / summed.sum())
