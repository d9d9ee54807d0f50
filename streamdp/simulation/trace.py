"""What a learner believed along a stream: its priors, the truth beside them, its experts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.learning.experts import ExpertMixture
from streamdp.learning.paces import pace_shares
from streamdp.simulation.bands import SHARES, band
from streamdp.simulation.replay import replay
from streamdp.simulation.stream import Stream
from streamdp.types import Entropy, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """One replay, seen from inside; j of the quantiles.

    Args:
        quantiles: Which, shape (j,).
        truth: Their true values, NaN for a batch without records, shape (batches, j).
        bands: `SHARES` of the prior of each before its release, shape (batches, j, 4).
        paces: Weights of the experts before each release, shape (batches, k); None for a learner
            without experts.
    """

    quantiles: tuple[float, ...]
    truth: FloatArray
    bands: FloatArray
    paces: FloatArray | None


def trace(kind: Quantiles, stream: Stream, entropy: Entropy) -> Trace:
    """Replay and look at the lowest, middle and highest quantile."""
    count = len(kind.quantiles)
    targets = sorted({0, count // 2, count - 1})
    truth, bands, paces = [], [], []
    for step in replay(kind, stream, entropy):
        empty = bool(np.isnan(step.errors).any())
        values = [kind.grid.value(int(step.truth[j])) for j in targets]
        truth.append([np.nan] * len(targets) if empty else values)
        prior = step.plan.mechanism.prior
        bands.append([band(prior.robust[j], kind.grid) for j in targets])
        if isinstance(kind.learner, ExpertMixture):
            paces.append(pace_shares(step.state))
    return Trace(
        tuple(float(kind.quantiles[j]) for j in targets),
        np.array(truth),
        np.array(bands).reshape(-1, len(targets), len(SHARES)),
        np.array(paces) if paces else None,
    )
