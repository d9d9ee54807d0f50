"""How much the default learner trusts each pace of change: the weights of its experts."""

from __future__ import annotations

import numpy as np

from streamdp.learning.averaging import Averaging
from streamdp.learning.filters import DRIFTS
from streamdp.types import FloatArray, Json


def pace_names() -> tuple[str, ...]:
    """One name an expert, from slow to fast."""
    return tuple(map(_name, DRIFTS.tolist()))


def pace_shares(state: Json) -> FloatArray:
    """Weights of the experts, all their widths together, shape (k,); equal before any release.

    Args:
        state: Of `learning.experts`, from releases alone.
    """
    if not state:
        return np.full(len(DRIFTS), 1.0 / len(DRIFTS))
    known = Averaging.from_json(state)
    summed = np.zeros(len(DRIFTS))
    for part, trust in zip(known.parts, known.trust.tolist(), strict=True):
        weights = np.exp(part.log_weights - part.log_weights.max()).sum(axis=1)
        summed[: len(weights)] += trust * weights / weights.sum()
    return summed


def _name(drift: float) -> str:
    if drift == 0.0:
        return "steady level"
    return "last release" if np.isinf(drift) else f"drift {drift:g}"
