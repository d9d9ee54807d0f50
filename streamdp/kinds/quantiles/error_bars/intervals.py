"""Intervals of *drawn* quantiles, computed from releases alone: post-processing, so free.

**Ranks.** The law of the ranks that released values have in their batch follows from the tree and
the public number of rows (`planning.rank_law`). It is the same for any batch. Ranks G that the
values o may have had make a plausible batch: its distribution function goes through all points
(o_j, G_j), and its quantiles are read off it. Between the points and beyond them it follows a law
of Tukey's family, from the uniform one to ones with heavy tails, and its records lie at random
(`curve`).

Each of what follows can only widen an interval:

- *Noise reaches the ends of a batch.* A value released alone may lie outside the batch, drawn by
  its prior as much as by the data. Batches of four parameters are weighted by the law of the draws
  under the actual prior (`plausible`). A joint draw may follow its shapes as a whole, so the law of
  its root is divided by what it sums to under each batch (`normaliser`). In a tail, at a first
  release, or if a quarter of the draws may lie outside, nothing but the guess tells the scale.
- *A tail that follows its prior.* A single value in a tail that moves by far more than its noise
  may have left the batch: its interval is the grid.
- *Little budget.* A value that was hardly measured lies between its neighbours: its interval
  reaches from that of one to that of the other.
- *A sharp end.* An outer value beyond which few records lie may be far outside a batch that ends
  sharply. Its interval reaches inwards to the next value that is surely on the other side of the
  quantile, or to the middle of its prior.
- *Holes.* Between two humps all values have one rank: a draw lies anywhere there, its quantile at
  one of the ends. The more noise a value has, the likelier it lies in a hole. Its interval reaches
  to the next measured value, or by the believed spread of a batch.
- *Thin parts.* Values of several quantiles that wander from release to release by more than their
  neighbours show: a rank is as wide as that makes it (`width_of_rank`).
- *Growing gaps.* Where noise reaches an end and the last gaps between values grow, the next may be
  as many times larger.
- *Steps.* A value between two steps of the column has its quantile at one of them.

References:
    Parzen, Wei & Xie 1994 (resampling by a pivotal function); Tukey's lambda distributions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from streamdp.kinds.quantiles.error_bars.curve import UNSEEN, Lay, lay, through
from streamdp.kinds.quantiles.error_bars.plausible import plausible
from streamdp.kinds.quantiles.error_bars.width_of_rank import widths
from streamdp.mechanisms.quantile_tree.planning.accuracy import Believed
from streamdp.mechanisms.quantile_tree.planning.rank_law import (
    SAMPLES,
    deviations,
    rank_samples,
    uniforms,
)
from streamdp.mechanisms.quantile_tree.pulls import draw_strengths, off_atoms, outside
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior, Shapes
from streamdp.priors.shapes import band
from streamdp.types import FloatArray, Grid, IntArray

CHANCE = 1e-3
"""Most that the probability of so many multiples may be, had the column no step."""

NEAR = 0.1
"""Part of a step within which the interval of a value on it does not reach the next. An interval
reaches by two deviations of its rank over the records of a step: the quantile is at the next one on
this side less than once in 40 times then."""

_NO_CELLS: IntArray = np.empty(0, dtype=np.int64)


def step_of(cells: IntArray, public: IntArray = _NO_CELLS) -> int:
    """Estimate the step of the column's values, in cells; 1 if none is significant.

    Whole numbers on a grid of hundredths have all records at every hundredth cell. A draw that may
    fall on any cell finds such cells where many records are; chance alone hardly draws several
    multiples of one step. Where it would not, values lie on the step, and ends of intervals are
    rounded to it as to cells. The least probable step is taken, of all that divide two of the
    cells.

    Args:
        cells: Of drawn values.
        public: Cells that draws favour whatever the batch is. A step of their own is none of the
            column.
    """
    distinct = np.unique(cells[cells != 0])
    found, least = 1, math.log(CHANCE)
    if len(distinct) < 3:
        return found
    divisors = np.unique(np.gcd.outer(distinct, distinct)[np.triu_indices(len(distinct), 1)])
    for step in divisors[divisors > 1].tolist():
        count = int((distinct % step == 0).sum())
        if count < 3:
            continue
        ways = math.comb(len(distinct), count) * len(divisors)
        by_chance = 1.0 / step
        if len(public):
            by_chance = max(by_chance, float((public % step == 0).mean()))
        chance = math.log(ways) + count * math.log(by_chance)
        if chance < least:
            found, least = step, chance
    return found


LEVEL = 0.95
"""Share of intervals that hold the batch's true quantile."""

FAINT = 6.0
"""Sharpness times records of a region below which what is drawn in it was hardly measured."""

HELD = 8.0
"""Sharpness times records beyond an outer value: with as many, a draw outside the batch is rare
even if most of the prior lies there."""

MIDDLE = (0.25, 0.75)
"""Shares of a prior between which its middle lies."""

LEAST_PAST = 3
"""Past releases of several quantiles from which on it shows where values wander."""

SURELY = 0.01
"""Part of the posterior of a width that may be below what its neighbours show, for it to count."""

THINNER = np.array([1.0, 10.0])
"""Times as wide as its neighbours show that a rank may well be. This and `SURELY` were chosen on
streams 10000 to 10239 and 60000 to 60359 of `calibration_family`."""

ENOUGH = 12
"""Past values of a single quantile that show how thin batches are there, and where piles are."""

QUARTERS = (0.25, 0.5, 0.75)
"""Shares of a prior that say where its middle lies, and how wide it is."""

MOST_PULLED = 1.0
"""Draws that a learned prior is worth at most where it pulls a value: the draws that it was learned
from were pulled themselves."""

OUTSIDE = 0.25
"""Share of draws that may lie outside of a batch, were the prior as even there as inside, from
which on they hardly show it."""

TAIL = 0.1
"""Share of the records beyond a quantile below which it lies in a tail."""

ROUGHER = 1.5
"""Times as far from the released value that a quantile may lie as in batches of four parameters."""

_EDGES, _EDGES_ALONE = np.array([0.025, 0.975]), np.array([0.0175, 0.9825])
"""Shares between which plausible values are taken: those of `LEVEL`; of a single quantile somewhat
more once how a batch is spread there is estimated from past values."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Where a true quantile lies with probability `LEVEL`, in the unit of the value."""

    lower: float
    upper: float


def intervals(
    tree: QuantileTree,
    prior: JointPrior,
    rows: int,
    values: tuple[float, ...],
    believed: Believed,
    past: tuple[float, ...] = (),
) -> tuple[Interval, ...]:
    """Intervals of the batch's quantiles, each holding the released value, on the public grid.

    Args:
        tree: What drew the values.
        prior: What they were drawn from.
        rows: Expected number of records, public.
        values: Released, one a quantile, non-decreasing.
        believed: Place and spread of a batch as the configuration believes.
        past: Values drawn in releases before, the newest last.
    """
    scale, resolution = believed.scale, float(tree.grid.resolution)
    released, seen = _untied(np.array(values), resolution), np.array((*past, *values))
    ranks, laid = _laid(tree, bool(prior.shapes), rows)
    noisy = is_noisy(tree, rows)
    if len(values) == 1:
        shares = _EDGES_ALONE if past else _EDGES
        found, p_moved = _alone(tree, laid, prior, rows, scale, seen)
    else:
        shares, found = _EDGES, through(released, laid)
    edges = np.quantile(found, shares, axis=0)
    if noisy and (len(values) == 1 or tree.node == "joint"):
        few = plausible(tree, prior, rows, released, scale).edges(shares)
        few = few if len(values) > 1 else released + ROUGHER * (few - released)
        edges = np.stack([np.minimum(edges[0], few[0]), np.maximum(edges[1], few[1])])
    inner = _inwards(released, ranks, tree, prior, rows, believed)
    if len(values) == 1 and len(past) >= ENOUGH and not noisy:
        more = [_between_piles(seen, resolution)]
    else:
        more = [off_atoms(tree, prior, rows, np.array(values))]
        more.append(across(tree, rows, released, tuple(faint(tree, rows)), scale))
    step = _step(tree, prior, seen)
    if step == 1 and len(values) > 1 and len(past) >= LEAST_PAST * len(values):
        more.append(_wandering(tree, ranks, rows, seen.reshape(-1, len(values))))
    for ends in (inner, *more):
        edges = np.stack([np.minimum(edges[0], ends[0]), np.maximum(edges[1], ends[1])])
    if len(values) == 1 and p_moved > 0.5 and _may_stray(tree, prior, rows):
        edges = np.array([[-np.inf], [np.inf]])
    lower, upper = _bracketed(tree, rows, *edges)
    drawn = np.array(values)
    return _on_grid(tree.grid, step, drawn, np.minimum(lower, drawn), np.maximum(upper, drawn))


def _between_piles(values: FloatArray, resolution: float) -> FloatArray:
    """Ends of the interval of the last value that reach to piles of equal records beside it.

    No records lie between two piles, so a draw lies anywhere there while the quantile lies at one
    of them. Values that repeat more often than chance would let them, were all between the
    outermost as likely, are piles. Shape (2, 1), no bound where there is none.
    """
    cells, counts = np.unique(np.rint(values / resolution), return_counts=True)
    last, span = round(float(values[-1]) / resolution), float(np.ptp(cells)) + 1.0
    chances = [math.log(math.comb(len(values), each)) for each in counts.tolist()]
    unlikely = np.array(chances) - (counts - 1) * math.log(span) < math.log(CHANCE)
    piles = cells[unlikely] * resolution
    if last in cells[unlikely]:
        piles = piles[:0]
    below, above = piles[piles < values[-1]], piles[piles > values[-1]]
    low, high = below[-1:] if len(below) else [np.inf], above[:1] if len(above) else [-np.inf]
    return np.array([low, high])


@functools.lru_cache(maxsize=64)
def is_noisy(tree: QuantileTree, rows: int) -> bool:
    """Whether released values may well lie near the end of a batch, or outside it."""
    targets = np.array([float(quantile) for quantile in tree.quantiles])
    off = np.quantile(np.abs(rank_samples(tree, rows, SAMPLES) - targets), LEVEL, axis=0)
    return bool((off > FAR * np.minimum(targets, 1.0 - targets)).any())


@functools.lru_cache(maxsize=64)
def hides(tree: QuantileTree, rows: int) -> bool:
    """Whether draws of a single quantile hardly show the scale of a batch where it lies.

    So many may lie outside of the batch, or a tail that is heavier than any guess is as thin there.
    """
    quantile = float(tree.quantiles[0])
    (_, paid), *_ = draw_strengths(tree, rows)
    beyond = min(quantile, 1.0 - quantile)
    return beyond < TAIL or math.exp(-paid * beyond) > OUTSIDE


@functools.lru_cache(maxsize=64)
def faint(tree: QuantileTree, rows: int) -> Mapping[int, tuple[int, int]]:
    """Targets that were hardly measured, with the indices of the values that bound their region."""
    levels, edges = tree.levels(), [0.0, *map(float, tree.quantiles), 1.0]
    found: dict[int, tuple[int, int]] = {}
    for node in tree.nodes():
        share = edges[node.right + 1] - edges[node.left + 1]
        sharpness = float(levels[node.level].sharpness(node.quantiles))
        if node.level and sharpness * share * rows < FAINT:
            found |= dict.fromkeys(node.targets, (node.left, node.right))
    return MappingProxyType(found)


def _alone(
    tree: QuantileTree, laid: Lay, prior: JointPrior, rows: int, scale: float, values: FloatArray
) -> tuple[FloatArray, float]:
    """Return where a single quantile may lie, and how likely its values move more than their noise.

    It lies so in batches in which the last value was drawn; shape (samples, 1).

    Where noise reaches the end of a batch, a learned prior of variance B pulls draws to its middle
    c: of noise N about Q they lie about (B·Q + N·c)/(B + N), and show c + (draw - c)·(1 + N/B).

    Args:
        tree: What drew it.
        laid: How batches lie about it.
        prior: What it was drawn from.
        rows: Expected number of records.
        scale: Spread of a batch as the configuration believes.
        values: Released one after the other.
    """
    chance = uniforms("scale", SAMPLES)
    target, cell = float(tree.quantiles[0]), float(tree.grid.resolution)
    off, guesses = (
        (laid.there - laid.standard)[:, 0] / laid.rise,
        scale * laid.rise / laid.deviation,
    )
    known = widths(target, rows, cell, guesses, off, values.tolist())
    wide = known.at(chance)
    value, pulled, middle = float(values[-1]), np.zeros(SAMPLES), 0.0
    if is_noisy(tree, rows) and (hides(tree, rows) or len(values) == 1):
        least, most = np.log(UNSEEN)
        wide = np.maximum(wide, guesses * np.exp(least + (most - least) * chance))
    if is_noisy(tree, rows) and len(values) > 1:
        low, middle, high = band(prior.robust[0], tree.grid, QUARTERS).tolist()
        scale = (high - low) / math.log(4.0)
        pulled = np.minimum(wide**2 * off.var() / (2.0 * scale**2), MOST_PULLED)
    shown = value + (value - middle) * pulled
    return np.asarray(shown + wide * off * np.sqrt(1.0 + pulled))[:, None], known.p_moved


def _wandering(tree: QuantileTree, ranks: FloatArray, rows: int, values: FloatArray) -> FloatArray:
    """Return ends of intervals where values wander by more than their neighbours show, (2, m).

    Where a quantile lies in a thin part of a batch its values differ by more from day to day than
    ranks would make them were records spread evenly from one value to the next. What all quantiles
    move by together (the median of their moves) is no wandering; nor are whole steps of a column.

    Args:
        tree: What drew the values.
        ranks: That released values may have, shape (samples, m).
        rows: Expected number of records.
        values: Released one after the other, shape (releases, m).
    """
    targets = np.array([float(quantile) for quantile in tree.quantiles])
    cell, last = float(tree.grid.resolution), values[-1]
    found = np.array([np.full(len(targets), np.inf), np.full(len(targets), -np.inf)])
    slopes = np.diff(np.median(values, axis=0)) / np.diff(targets)
    moves = np.median(np.diff(values, axis=0), axis=1)
    values = values - np.concatenate(([0.0], np.cumsum(moves)))[:, None]
    around = np.stack((np.append(slopes[:1], slopes), np.append(slopes, slopes[-1:])))
    for j, guess in enumerate(np.maximum(around.max(axis=0), cell).tolist()):
        off = targets[j] - ranks[:, j]
        known = widths(targets[j], rows, cell, guess * THINNER, off, values[:, j].tolist())
        if known.p_moved < 0.5 and known.at(np.array(SURELY)) > guess:
            wide = known.at(uniforms("scale", SAMPLES))
            found[:, j] = np.quantile(last[j] + wide * off, _EDGES)
    return found


def _may_stray(tree: QuantileTree, prior: JointPrior, rows: int) -> bool:
    """Whether a draw in a tail may lie outside of a batch that lies anywhere on the grid.

    A draw beyond the batch is e^-k as likely as one within, k its sharpness times the records
    beyond the quantile, but the prior may have less than e^-k of its mass where the batch lies.
    Values then follow the prior, which follows them: they wander, and say nothing of the batch.
    """
    quantile = float(tree.quantiles[0])
    (_, paid), *_ = draw_strengths(tree, rows)
    half = float(tree.grid.resolution) / 2.0
    ends = np.array([tree.grid.value(tree.grid.lower), tree.grid.value(tree.grid.upper)])
    faintest = float(prior.robust[0].log_mass(ends - half, ends + half).min())
    return hides(tree, rows) and paid * min(quantile, 1.0 - quantile) < -faintest


@functools.lru_cache(maxsize=32)
def _laid(tree: QuantileTree, shaped: bool, rows: int) -> tuple[FloatArray, Lay]:
    """Ranks that released values may have, and how batches then lie: found once for a tree."""
    ranks = _pulled(tree, shaped, rows)
    ranks.flags.writeable = False
    targets = np.array([float(quantile) for quantile in tree.quantiles])
    return ranks, lay(targets, ranks, rows)


def _pulled(tree: QuantileTree, shaped: bool, rows: int) -> FloatArray:
    """Sample the ranks of released values, with what shapes may add below the root.

    Given the root's values, shapes know where the others lie: a bump has about all the mass of its
    node, where an even prior has one part in n for each of its n units of noise. A draw stays on
    the bump until its ranks are off by ln(n) units a target.
    """
    ranks, levels = rank_samples(tree, rows, SAMPLES), tree.levels()
    nodes = [node for node in tree.nodes() if node.level and shaped]
    edges = [0.0, *map(float, tree.quantiles), 1.0]
    ranks = ranks.copy()
    for node in nodes:
        strength = float(levels[node.level].sharpness(node.quantiles)) * rows
        units = strength * (edges[node.right + 1] - edges[node.left + 1])
        pull = len(node.targets) * np.log(max(units, 1.0)) / strength
        targets = list(node.targets)
        low = ranks[:, node.left] if node.left >= 0 else np.zeros(SAMPLES)
        high = ranks[:, node.right] if node.right < len(tree.quantiles) else np.ones(SAMPLES)
        off = pull * (2.0 * uniforms(f"pull {targets}", SAMPLES, 1) - 1.0)
        ranks[:, targets] = (ranks[:, targets] + off).clip(low[:, None], high[:, None])
    return ranks


def _inwards(
    released: FloatArray,
    ranks: FloatArray,
    tree: QuantileTree,
    prior: JointPrior,
    rows: int,
    believed: Believed,
) -> FloatArray:
    """Return inner bounds of values that may lie outside the batch; shape (2, m)."""
    levels, last = tree.levels(), len(tree.quantiles) - 1
    targets = [float(quantile) for quantile in tree.quantiles]
    found = np.array([np.full(last + 1, np.inf), np.full(last + 1, -np.inf)])
    below, above = (ends.copy() for ends in outside(tree, rows))
    for node in tree.nodes():
        records = float(levels[node.level].sharpness(node.quantiles)) * rows
        above[last] |= last in node.targets and records * (1.0 - targets[last]) < HELD
        below[0] |= 0 in node.targets and records * targets[0] < HELD
    for j in np.flatnonzero(below | above).tolist():
        surely_below = ~above & ((ranks <= targets[j]).mean(axis=0) >= _EDGES[1])
        surely_above = ~below & ((ranks >= targets[j]).mean(axis=0) >= _EDGES[1])
        inwards = above[j] and not surely_below.any(), below[j] and not surely_above.any()
        middle = _middle(tree, prior, j, believed) if any(inwards) else (np.inf, -np.inf)
        if above[j]:
            found[0, j] = middle[0] if inwards[0] else released[surely_below].max()
        if below[j]:
            found[1, j] = middle[1] if inwards[1] else released[surely_above].min()
    return found


def _middle(
    tree: QuantileTree, prior: JointPrior, target: int, believed: Believed
) -> tuple[float, float]:
    """Ends of the middle of a prior and of what the configuration believes, the outer of each."""
    low, high = band(prior.robust[target], tree.grid, MIDDLE).tolist()
    place, scale = believed.location, believed.scale
    return min(low, place - scale), max(high, place + scale)


def _bracketed(
    tree: QuantileTree, rows: int, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Intervals of hardly measured values reach from the one neighbour's to the other's."""
    lower, upper = np.minimum.accumulate(lower[::-1])[::-1], np.maximum.accumulate(upper)
    for target, (left, right) in faint(tree, rows).items():
        lower[target] = min(lower[target], lower[left] if left >= 0 else np.inf)
        upper[target] = max(upper[target], upper[right] if right < len(upper) else -np.inf)
    return lower, upper


def _step(tree: QuantileTree, prior: JointPrior, values: FloatArray) -> int:
    """Return the step of values that were drawn by one tree, in cells; 1 where they show none."""
    if tree.node == "joint" and not tree.spread:
        return 1
    resolution = float(tree.grid.resolution)
    shapes = prior.shapes if tree.node == "joint" else None
    public = _NO_CELLS if shapes is None else _centre_cells(shapes, resolution)
    return step_of(np.rint(values / resolution).astype(np.int64), public)


@functools.lru_cache(maxsize=16)
def _centre_cells(shapes: Shapes, resolution: float) -> IntArray:
    """Return the cells of the centres of shapes, increasing: found once for many releases."""
    return np.unique(np.rint(shapes.centres / resolution)).astype(np.int64)


def _on_grid(
    grid: Grid, step: int, values: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[Interval, ...]:
    """Rounded outwards to cells; to the step of the values, where they reach far enough.

    A value between two steps lies where no records are: its quantile is at one of them. One on a
    step may belong to the next if its rank is near the end of its records.
    """
    resolution = float(grid.resolution)
    cells = np.rint(values / resolution).astype(np.int64)
    low, high = np.floor(lower / resolution + 1e-9), np.ceil(upper / resolution - 1e-9)
    between, near = cells % step != 0, max(1.0, NEAR * step)
    low = np.where(between | (cells - low > near), step * np.floor(low / step), low)
    high = np.where(between | (high - cells > near), step * np.ceil(high / step), high)
    low, high = np.minimum.accumulate(low[::-1])[::-1], np.maximum.accumulate(high)
    low, high = low.clip(grid.lower, grid.upper), high.clip(grid.lower, grid.upper)
    pairs = zip(low.tolist(), high.tolist(), strict=True)
    return tuple(Interval(grid.value(int(a)), grid.value(int(b))) for a, b in pairs)


def _untied(values: FloatArray, resolution: float) -> FloatArray:
    """Values with those of one cell spread over it."""
    first = values.searchsorted(values)
    count = values.searchsorted(values, side="right") - first
    return np.asarray(values + resolution * ((np.arange(len(values)) - first + 0.5) / count - 0.5))


SPARSE = 0.15
"""Least share of a batch between two measured values with which they do not show a hole."""

NOISY, NOISY_ALONE = 0.025, 0.024
"""Deviations of a rank from which on an interval reaches across a hole: of few quantiles, and of
one alone. Below them the reach falls with the fourth power of the deviation."""

FAR = 0.3
"""Share of the way to the end of a batch beyond which the noise makes its shape a question."""

MOST_GROWTH = 30.0
"""Times as large as the last gap between values that the next may be."""

OUTWARDS = 1.5
"""Reach of an outermost value outwards, in units of the way to the next one inwards."""

ALONE = 1.0
"""Reach of a single quantile, in units of what a batch is believed to be spread."""


def across(
    tree: QuantileTree, rows: int, released: FloatArray, hardly: tuple[int, ...], scale: float
) -> FloatArray:
    """Ends of intervals that reach across holes, shape (2, m).

    Args:
        tree: What drew the values.
        rows: Expected number of records, public.
        released: Values, non-decreasing, shape (m,).
        hardly: Indices of values that were hardly measured, which say nothing.
        scale: Spread of a batch as the configuration believes.

    Returns:
        No bound (∞, -∞) where an interval need not reach.
    """
    found = np.array([np.full(len(released), np.inf), np.full(len(released), -np.inf)])
    measured = np.setdiff1d(np.arange(len(released)), hardly)
    targets = np.array([float(tree.quantiles[j]) for j in measured])
    off, values = deviations(tree, rows)[measured], released[measured]
    reach = _across_holes(targets, values, off, scale)
    if len(measured) > 2:
        gaps = np.diff(values)
        if off[0] > FAR * targets[0]:
            reach[0, 0] = max(reach[0, 0], _beyond(gaps[0], gaps[1]))
        if off[-1] > FAR * (1.0 - targets[-1]):
            reach[-1, 1] = max(reach[-1, 1], _beyond(gaps[-1], gaps[-2]))
    found[0, measured] = values - reach[:, 0]
    found[1, measured] = values + reach[:, 1]
    return found


def _across_holes(
    targets: FloatArray, values: FloatArray, off: FloatArray, scale: float
) -> FloatArray:
    """Return how far down and up intervals reach across gaps, by the noise of ranks; (k, 2)."""
    if len(values) == 1:
        noisy, ways = NOISY_ALONE, np.full(2, ALONE * scale)
    else:
        between = np.where(np.diff(targets) >= SPARSE, np.diff(values), 0.0)
        noisy = NOISY
        ways = np.concatenate((OUTWARDS * between[:1], between, OUTWARDS * between[-1:]))
    share = np.minimum(1.0, off / noisy) ** 4
    return np.asarray(np.stack((ways[:-1], ways[1:]), axis=1) * share[:, None])


def _beyond(last: float, before: float) -> float:
    """Reach beyond the last value: gaps may go on growing as they grew."""
    return float(last * min(last / max(before, 1e-300), MOST_GROWTH))
