"""All quantiles of a release, from those that were drawn: free, since releases alone are looked at.

Quantiles that were not drawn follow from the belief after the draws, and from a smooth law where
the belief is unsure.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from streamdp.learning.experts.belief.belief import Belief
from streamdp.learning.experts.belief.density import extended
from streamdp.learning.experts.drawing.prior_scale import repeated_values
from streamdp.learning.experts.drawing.sequential import Reading
from streamdp.learning.experts.drawing.ways import MEAN_ABSOLUTE, Way
from streamdp.learning.experts.facts import Facts
from streamdp.learning.experts.publishing.error_bars import error_bars
from streamdp.learning.experts.publishing.smooth_law import SmoothLaw
from streamdp.types import FloatArray


def cells(facts: Facts, way: Way, drawn: tuple[int, ...]) -> tuple[int, ...]:
    """Cells of all quantiles: those drawn as they are.

    Never crossing: an inferred quantile lies between the measured ones beside it.
    """
    if way.reading is None or way.whole:
        return drawn
    released = _released(facts, way, drawn)
    point = believed(facts, way, way.reading.after(released), released)
    grid, count = facts.grid, len(point)
    nearest = np.clip(np.rint(point / facts.resolution), grid.lower, grid.upper).astype(np.int64)
    lower = np.full(count, grid.lower, dtype=np.int64)
    upper = np.full(count, grid.upper, dtype=np.int64)
    lower[list(way.targets)] = upper[list(way.targets)] = drawn
    lower = np.maximum.accumulate(lower)
    upper = np.minimum.accumulate(upper[::-1])[::-1]
    return tuple(np.clip(nearest, lower, upper).tolist())


def intervals(
    facts: Facts, way: Way, drawn: tuple[int, ...], known: tuple[int, ...]
) -> dict[int, tuple[float, float]]:
    """Intervals of the quantiles that were not drawn, by index; they hold about 95 % of them.

    Args:
        facts: About the stream.
        way: How the others were drawn.
        drawn: Their cells.
        known: Cells of all quantiles, as `cells` has them.
    """
    if way.reading is None or way.whole:
        return {}
    grid, resolution = facts.grid, facts.resolution
    released = _released(facts, way, drawn)
    belief = way.reading.after(released)
    low, high = error_bars(facts, way, belief, way.usual.density, released)
    lower = np.minimum(np.floor(low / resolution + 1e-9), known)
    upper = np.maximum(np.ceil(high / resolution - 1e-9), known)
    lower, upper = (np.clip(each, grid.lower, grid.upper) for each in (lower, upper))
    return {
        j: (float(grid.value(int(lower[j]))), float(grid.value(int(upper[j]))))
        for j in range(len(known))
        if j not in way.targets
    }


def believed(facts: Facts, way: Way, belief: Belief, released: Mapping[int, float]) -> FloatArray:
    """Belief about all quantiles after some are released, non-decreasing."""
    if len(released) == len(facts.targets):
        return belief.point()
    ranks = belief.deviations() * way.usual.density
    cell = facts.resolution
    repeated = np.array([repeated_values(each, cell)[1] for each in way.panel.past])
    law = SmoothLaw.of(facts.targets, way.panel.log_gaps, way.usual.density)
    return law.filled(belief.point(), ranks, released, repeated)


def missed(facts: Facts, way: Way, reading: Reading, known: FloatArray) -> float:
    """Variance by which a turn would have missed what was drawn, in squared ranks.

    All are noisy, the turn's own too, so what noise explains is taken off.

    Args:
        facts: About the stream.
        way: It drew all quantiles.
        reading: Of the turn.
        known: What was drawn.
    """
    released = {draw.target: float(known[draw.target]) for draw in reading.draws}
    filled = believed(facts, way, reading.after(released), released)
    inferred = [j for j in range(len(known)) if j not in released]
    off = np.abs(_ranks(facts, filled, known) - facts.targets)[inferred]
    noise = np.array([way.noise[j] for j in inferred])
    size = float(off.mean()) / MEAN_ABSOLUTE
    return max(size**2 - 2.0 * float((noise**2).mean()), 0.0)


def _ranks(facts: Facts, values: FloatArray, known: FloatArray) -> FloatArray:
    """Ranks of some values in a batch of known quantiles, straight between and beyond them."""
    targets = facts.targets
    curve = known + 1e-3 * facts.resolution * np.arange(len(known))
    return np.clip(extended(values, curve, targets), 0.0, 1.0)


def _released(facts: Facts, way: Way, drawn: tuple[int, ...]) -> dict[int, float]:
    pairs = zip(way.targets, drawn, strict=True)
    return {j: float(facts.grid.value(cell)) for j, cell in pairs}
