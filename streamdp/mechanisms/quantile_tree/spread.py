"""All quantiles in one draw that can cut equal records: JointExp over places, not values.

The r-th record of a cell stands on a level of the cell that r alone decides. So one record more is
one place more, whatever the batch is, and the law is that of `joint` with records at different
places. A cell's mass is spread over its levels evenly: P(o) ∝ Π_j μ(do_j) ·
Π_j K(c·|records between o_j and o_{j+1} - n·Δ_j|) over ordered tuples o_1 < ... < o_k of the line.

Between two places nothing depends on where a value is, so the line is cut at the places alone. k
targets between the same two have the mass M^k/k!: a record that cuts M in two changes no weight but
by ranks. One forward pass adds up, for each j and each such part, the tuples whose j-th value lies
there; a backward draw finds the parts, and the prior the cells within them. A batch of n records
has n + 1 parts at most: time and memory grow with n.

References:
    Gillenwater, Joseph & Kulesza 2021 (JointExp, and M^k/k!).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from streamdp.mechanisms.quantile_tree.exponential import BaseMeasure
from streamdp.mechanisms.quantile_tree.grains import GRAINS, Grains
from streamdp.mechanisms.quantile_tree.joint import ROUNDINGS, Targets, forward_slack, log_utilities
from streamdp.mechanisms.quantile_tree.passes import SHARPEST, Gap, LongPass, log_kernel
from streamdp.mechanisms.quantile_tree.points import shape_points
from streamdp.mechanisms.quantile_tree.sharpness import CHOICES_PER_DRAW, gaps
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Mixture
from streamdp.privacy.draws import choose
from streamdp.types import Entropy, FloatArray, Grid, IntArray, Prior

LEVELS = 1024
"""Levels of a cell."""

_SINGLE = 16
"""Records of a cell that stand alone on a level. From there on the number of levels that records
stand on doubles as their number grows fourfold, so that many equal records have few parts."""

_MOST_TERMS = 2**30
"""Terms of the longest running sum: two for each of half a billion records, whose pass would need
some 300 GB."""


def spread_slack(draws: int) -> Fraction:
    """Part of epsilon that pays for the rounding of a draw of so many quantiles; see `joint_slack`.

    A logarithm is at most 700 in size for each target: 45 of the kernel, 647 of a part of a
    cell, and ln k. A run of k targets in one part adds up k terms more than a step has. Where its
    part is cut depends on the batch, so the choices that find a cell within it are paid for too.
    """
    choices = draws * CHOICES_PER_DRAW + 1
    return forward_slack(draws, ROUNDINGS + 4 * draws, _MOST_TERMS, choices)


def draw_spread(
    grains: Grains,
    targets: Targets,
    sharpness: float,
    prior: JointPrior,
    grid: Grid,
    entropy: Entropy,
) -> tuple[int, ...]:
    """Draw an ordered tuple of fine points of the grid.

    Args:
        grains: The batch. Private.
        targets: All targets, by their index in the prior.
        sharpness: c.
        prior: Robust priors, whose mean is that of all targets, and perhaps shapes.
        grid: Public cells.
        entropy: Source of chance.

    Privacy: add/remove of a record is that of a place, whichever cell it is in: loss of range
    c·4(1 - min Δ); substitute is a place less and another more, n being fixed: 4·c. One draw, pure
    and bounded-range. Total: every tuple has a positive weight, whatever the counts.
    """
    measure = BaseMeasure(_common(tuple(prior.robust[j] for j in targets)), grid)
    places = Places.of(grains, measure)
    spread = SpreadDraw.of(places, tuple(targets.values()), sharpness, measure)
    if prior.shapes is None:
        return spread.draw(entropy)
    log_robust = math.log(prior.robust_weight) + spread.log_total()
    public = shape_points(prior.shapes, tuple(targets), grid)
    utilities = log_utilities(places.ranks_of(public.distinct), places.rows, spread.kernel, public)
    log_shapes = prior.shapes.log_weights + prior.log_bump_mass * len(targets) + utilities
    component = choose(np.append(log_robust, log_shapes), entropy)
    if component == 0:
        return spread.draw(entropy)
    return tuple(public.points[:, component - 1].tolist())


def _common(priors: tuple[Prior, ...]) -> Prior:
    """The mean of priors."""
    distinct = tuple(dict.fromkeys(priors))
    if len(distinct) == 1:
        return distinct[0]
    return Mixture(tuple(priors.count(each) / len(priors) for each in distinct), distinct)


@functools.lru_cache(maxsize=1)
def _order() -> IntArray:
    """Levels in the order in which records take them: halves, quarters, eighths in turn."""
    bits = LEVELS.bit_length() - 1
    numbers = np.arange(LEVELS)
    reverse = sum(((numbers >> bit) & 1) << (bits - 1 - bit) for bit in range(bits))
    return np.asarray(reverse ^ (LEVELS // 2), dtype=np.int64)


@functools.lru_cache(maxsize=4096)
def standing(count: int) -> tuple[IntArray, IntArray]:
    """Levels on which the first `count` records of a cell stand, and how many on each.

    One record more stands on one level; all others stay where they are.
    """
    order, on = _order(), np.zeros(LEVELS, dtype=np.int64)
    if count < _SINGLE:
        on[order[:count]] = 1
    else:
        size, held = _SINGLE, _SINGLE
        while size < LEVELS and count >= 4 * held:
            size, held = 2 * size, 4 * held
        on[order[:size]] = held // size
        rest = count - held
        if size < LEVELS:
            caught_up = min(rest, held)
            _dealt(on, order[size : 2 * size], caught_up)
            rest, size = rest - caught_up, 2 * size
        _dealt(on, order[:size], rest)
    levels = np.flatnonzero(on)
    return levels, on[levels]


def _dealt(on: IntArray, levels: IntArray, records: int) -> None:
    """Deal records to levels in turn."""
    each, more = divmod(records, len(levels))
    on[levels] += each
    on[levels[:more]] += 1


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Places:
    """A batch cut at its places: pieces of cells, or of gaps, and parts of one rank. Private.

    Args:
        edges: Ends of occupied cells and of the gaps between them, strictly increasing.
        keys: stretch·LEVELS + level at which each piece ends, strictly increasing, shape (p,).
        log_masses: ln of the prior's mass of each piece, shape (p,).
        starts: First piece of each part, shape (s,).
        ranks: Records left of each part, strictly increasing, shape (s,).
        rows: All records.
    """

    edges: IntArray
    keys: IntArray
    log_masses: FloatArray
    starts: IntArray
    ranks: IntArray
    rows: int

    def __repr__(self) -> str:
        return "Places(<private>)"

    @classmethod
    def of(cls, grains: Grains, measure: BaseMeasure) -> Places:
        """Places of the records of a batch; its cells lie in the grid of the prior."""
        grid, cells = measure.grid, grains.cells
        edges = np.unique(np.concatenate(([grid.lower, grid.upper + 1], cells, cells + 1)))
        records = np.zeros(len(edges) - 1, dtype=np.int64)
        records[edges.searchsorted(cells)] = grains.counts
        before = np.cumsum(records) - records
        ends, ranks = [np.arange(1, len(edges)) * LEVELS], [before + records]
        for held in np.unique(grains.counts).tolist():
            levels, on = standing(held)
            which = np.flatnonzero(records == held)[:, None]
            ends.append((which * LEVELS + levels + 1).ravel())
            ranks.append((before[which] + np.cumsum(on) - on).ravel())
        keys, rank = np.concatenate(ends), np.concatenate(ranks)
        order = np.lexsort((rank, keys))
        keys, rank = keys[order], rank[order]
        lengths = np.diff(keys, prepend=0)
        keys, rank, lengths = (each[lengths > 0] for each in (keys, rank, lengths))
        masses = measure.between(edges)[(keys - 1) // LEVELS] + np.log(lengths / LEVELS)
        starts = np.flatnonzero(np.diff(rank, prepend=-1))
        return cls(edges, keys, masses, starts, rank[starts], int(grains.before[-1]))

    def log_mass(self) -> FloatArray:
        """ln of the mass of each part; no mass of a piece is below e^-647."""
        return np.asarray(np.log(np.add.reduceat(np.exp(self.log_masses), self.starts)))

    def ranks_of(self, points: IntArray) -> IntArray:
        """Records left of fine points."""
        cells, level = np.divmod(points, GRAINS)
        keys = (self.edges.searchsorted(cells, side="right") - 1) * LEVELS
        keys += level * LEVELS // GRAINS
        piece = self.keys.searchsorted(keys, side="right")
        return np.asarray(self.ranks[self.starts.searchsorted(piece, side="right") - 1])

    def cell(self, part: int, measure: BaseMeasure, entropy: Entropy) -> int:
        """A cell of a part, by the prior alone."""
        start = int(self.starts[part])
        stop = int(self.starts[part + 1]) if part + 1 < len(self.starts) else len(self.keys)
        piece = start + choose(self.log_masses[start:stop], entropy)
        stretch = (int(self.keys[piece]) - 1) // LEVELS
        return measure.draw(int(self.edges[stretch]), int(self.edges[stretch + 1]), entropy)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SpreadDraw:
    """The forward pass over the parts of a batch. Private.

    Args:
        places: The batch.
        measure: The prior of all targets, on the grid.
        log_mass: Of each part, shape (s,).
        wanted: n·Δ_j, shape (k + 1,).
        sharpness: c.
        first: By j, ln of the weight of (o_1 ... o_j) with o_j in each part and o_{j-1} left of it.
        upto: The same wherever o_{j-1} is.
    """

    places: Places
    measure: BaseMeasure
    log_mass: FloatArray
    wanted: tuple[Gap, ...]
    sharpness: float
    first: list[FloatArray]
    upto: list[FloatArray]

    def __repr__(self) -> str:
        return "SpreadDraw(<private>)"

    @classmethod
    def of(
        cls,
        places: Places,
        targets: tuple[Fraction, ...],
        sharpness: float,
        measure: BaseMeasure,
    ) -> SpreadDraw:
        """Add up the weights.

        Args:
            places: The batch. Private.
            targets: Quantiles, strictly increasing in (0, 1).
            sharpness: c.
            measure: The prior.
        """
        wanted = tuple(Gap.of(gap * places.rows) for gap in gaps(targets))
        about = places, measure, places.log_mass(), wanted, min(sharpness, SHARPEST)
        made = cls(*about, [], [])
        ranks = places.ranks
        twice = np.repeat(ranks, 2)[1:]
        passes = {
            each: LongPass(twice, each, made.sharpness)
            for each in set(wanted[1:-1])
            if len(ranks) > 1
        }
        for j in range(len(targets)):
            reached = np.full(len(ranks), -np.inf)
            if j == 0:
                reached = made.kernel(ranks, 0)
            elif len(ranks) > 1:
                # Terms stand in every second place and what sees them in the places between, so
                # that a part sees those on its left alone.
                terms = np.full(len(twice), float(made.upto[-1].min()) - 5000.0)
                terms[0::2] = made.upto[-1]
                reached[1:] = passes[wanted[j]].step(terms)[1::2]
            made.first.append(made.log_mass + reached)
            made.upto.append(np.logaddexp.reduce(made.runs(j, slice(None)), axis=0))
        return made

    def kernel(self, records: IntArray, gap: int) -> FloatArray:
        """ln K(c·|records - n·Δ|)."""
        return log_kernel(self.wanted[gap].off(records) * self.sharpness)

    def runs(self, j: int, part: slice) -> FloatArray:
        """ln of the weight of (o_1 ... o_j) with just o_i ... o_j in a part, a row for each i."""
        mass, rows, stay = self.log_mass[part], [], 0.0
        for i in range(j, -1, -1):
            size = j - i
            rows.append(self.first[i][part] + size * mass + (stay - math.lgamma(size + 2)))
            if i:
                stay += float(self.kernel(np.zeros(1, dtype=np.int64), i)[0])
        return np.stack(rows[::-1])

    def ends(self) -> FloatArray:
        """ln of the weight of all tuples whose last value lies in each part."""
        return np.asarray(self.upto[-1] + self.kernel(self.places.rows - self.places.ranks, -1))

    def log_total(self) -> float:
        """ln of the weight of all tuples."""
        ends = self.ends()
        peak = float(ends.max())
        return peak + math.log(np.exp(ends - peak).sum())

    def draw(self, entropy: Entropy) -> tuple[int, ...]:
        """Fine points, non-decreasing: the last values first, then cells within their parts."""
        ranks, parts, j = self.places.ranks, list[int](), len(self.first) - 1
        part = choose(self.ends(), entropy)
        while True:
            i = choose(self.runs(j, slice(part, part + 1))[:, 0], entropy)
            parts += [part] * (j - i + 1)
            if i == 0:
                break
            left = self.upto[i - 1][:part] + self.kernel(ranks[part] - ranks[:part], i)
            part, j = choose(left, entropy), i - 1
        cells = sorted(self.places.cell(each, self.measure, entropy) for each in parts)
        return tuple(cell * GRAINS for cell in cells)
