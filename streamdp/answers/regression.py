"""Distributions of periods, by Gaussian regression over days (kriging).

A batch t of n_t records has the distribution function F_t = F + G_t, with F the base and

    Cov(G_s(x), G_t(y)) = B(F(x), F(y)) · k(s, t),    B(u, v) = min(u, v) - u·v,
    k = a_0 + a_1·e^(-d/45) + a_2·e^(-d/6) + a_3·[same weekday]·e^(-d/180) + (a_4 + 1/n_t)·[s = t],

d in days. Noisy shares are linear in F_t and the law of their noise is known, so the mean of a
period, of a difference of periods, or of a batch to come, and its variance, follow from one linear
system. The a are found by coordinate ascent of the marginal likelihood.

References:
    C. E. Rasmussen and C. K. I. Williams. Gaussian Processes for Machine Learning, 2006, chapter 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf

from streamdp.answers.base import Base, alone, pooled
from streamdp.answers.counted import Counted, Shares, diagonal, shares_of, sizes
from streamdp.types import FloatArray, IntArray

SLOW, FAST, WEEKS = 45.0, 6.0, 180.0
"""Days in which a deviation is forgotten."""

LEVELS = np.array([0.03, 0.1, 0.3, 0.6]) ** 2
SCALES = np.array([0.0, 0.01, 0.03, 0.07, 0.15, 0.3, 0.6, 1.2, 2.4]) ** 2
"""Variances that are tried: of the level that all batches share, and of each other kernel."""

SHAPE = 0.3**2
"""Variance of what lies between neighbouring pooled cuts, over that of a bridge between them."""

WITHIN = 0.07
"""Deviation of a batch's share between two of its cuts, over that of a bridge between them."""

WINDOW, MOST_WINDOWS, FEW_CUTS = 35, 8, 5
"""Batches of a stretch that scales are fitted on, how many stretches, and cuts of each batch."""

CONTEXT, MOST_AT_ONCE, PIECE = 42, 62, 28
"""Batches before and behind a period that tell of it, the longest that is solved for at once, and
pieces of longer ones."""

Scales = tuple[float, ...]


def bridge(one: FloatArray, other: FloatArray) -> FloatArray:
    """B of the Brownian bridge."""
    return np.asarray(np.minimum.outer(one, other) - np.multiply.outer(one, other))


def kernels(one: FloatArray, other: FloatArray) -> list[FloatArray]:
    """Kernels of days: level, slow, fast, weekday, and the batch itself."""
    apart = np.abs(np.subtract.outer(one, other))
    weekday = np.abs(np.subtract.outer(np.floor(one), np.floor(other))) % 7 == 0
    return [
        np.ones_like(apart),
        np.exp(-apart / SLOW),
        np.exp(-apart / FAST),
        weekday * np.exp(-apart / WEEKS),
        (apart == 0) * 1.0,
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """The regression on some batches.

    Args:
        base: F.
        places: Of the batches in the history, increasing.
        batch: That of each share, shape (k,).
        shares: F at its cut, shape (k,).
        factor: Cholesky factor of the covariance of shares.
        weights: That covariance, solved for the deviations of shares from F.
    """

    base: Base
    places: IntArray
    batch: IntArray
    shares: FloatArray
    factor: FloatArray
    weights: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Counted batches of one question, in order of time.

    Args:
        batches: At least one; each has at least one cut.
    """

    batches: tuple[Counted, ...]
    at: FloatArray = field(init=False)
    sizes: FloatArray = field(init=False)
    shares: tuple[Shares, ...] = field(init=False)
    _bases: dict[bytes, Base] = field(init=False, default_factory=dict)
    _solved: dict[tuple[bytes, bytes, Scales], Solved] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        found = sizes(self.batches)
        shares = tuple(map(shares_of, self.batches, found.tolist()))
        object.__setattr__(self, "at", np.array([each.at for each in self.batches]))
        object.__setattr__(self, "sizes", found)
        object.__setattr__(self, "shares", shares)

    def base(self, places: IntArray) -> Base:
        """The pooled distribution of some batches."""
        key = places.tobytes()
        if key not in self._bases:
            found = [self.shares[place] for place in places]
            self._bases[key] = pooled(found, self.sizes[places])
        return self._bases[key]

    def fitted(self) -> Scales:
        """Scales of largest marginal likelihood, over stretches spread evenly over the history."""
        count = len(self.batches)
        firsts = np.arange(0, max(count - WINDOW // 2, 1), WINDOW)
        if len(firsts) > MOST_WINDOWS:
            firsts = firsts[np.linspace(0, len(firsts) - 1, MOST_WINDOWS).astype(int)]
        stretches = [np.arange(first, min(first + WINDOW, count)) for first in firsts.tolist()]
        return _ascent([_Likelihood.of(self, each) for each in stretches])

    def solved(self, places: IntArray, scales: Scales, of: IntArray) -> Solved:
        """The regression on some batches, with the base of others around them."""
        key = places.tobytes(), of.tobytes(), scales
        if key not in self._solved:
            self._solved[key] = self._solve(places, scales, self.base(of))
        return self._solved[key]

    def among(self, scales: Scales, one: IntArray, other: IntArray) -> FloatArray:
        """k of some batches and others, with what chance records add to each."""
        parts = kernels(self.at[one], self.at[other])
        found = sum(scale * each for scale, each in zip(scales, parts, strict=True))
        return np.asarray(found + np.equal.outer(one, other) / self.sizes[other])

    def _solve(self, places: IntArray, scales: Scales, base: Base) -> Solved:
        found = [self.shares[place] for place in places]
        batch = np.repeat(places, [len(each.cells) for each in found])
        shares = base(np.concatenate([each.cells for each in found]))
        seen = np.concatenate([each.shares for each in found])
        noise = diagonal([each.noise for each in found])
        noise[np.diag_indices_from(noise)] += 1e-8 + 0.25 / self.sizes[batch] ** 2
        own = np.searchsorted(places, batch)
        kernel = self.among(scales, places, places)[np.ix_(own, own)]
        factor, _ = cho_factor(noise + bridge(shares, shares) * kernel, lower=True)
        return Solved(base, places, batch, shares, factor, cho_solve((factor, True), seen - shares))


@dataclass(frozen=True, slots=True, eq=False)
class _Likelihood:
    """The marginal likelihood of scales on a stretch of batches, from some cuts of each."""

    seen: FloatArray
    fixed: FloatArray
    parts: tuple[FloatArray, ...]

    @classmethod
    def of(cls, history: History, places: IntArray) -> _Likelihood:
        base = history.base(places)
        seen, shares, noise, batch = [], [], [], []
        for place in places:
            each = history.shares[place]
            count = len(each.cells)
            few = np.unique(np.linspace(0, count - 1, min(count, FEW_CUTS)).astype(int))
            at = base(each.cells[few])
            seen.append(each.shares[few] - at)
            shares.append(at)
            noise.append(each.noise[np.ix_(few, few)])
            batch.append(np.full(len(few), place))
        of, u = np.concatenate(batch), np.concatenate(shares)
        between = bridge(u, u)
        fixed = diagonal(noise) + between * np.equal.outer(of, of) / history.sizes[of]
        fixed[np.diag_indices_from(fixed)] += 1e-8 + 0.25 / history.sizes[of] ** 2
        own = np.searchsorted(places, of)
        found = kernels(history.at[places], history.at[places])
        parts = tuple(between * each[np.ix_(own, own)] for each in found)
        return cls(np.concatenate(seen), fixed, parts)

    def beside(self, scales: Sequence[float], part: int) -> FloatArray:
        """The covariance without one of its kernels."""
        whole = self.fixed.copy()
        for number, scale in enumerate(scales):
            if number != part and scale:
                whole += scale * self.parts[number]
        return whole

    def __call__(self, covariance: FloatArray) -> float:
        factor, failed = dpotrf(covariance, lower=True)
        if failed:
            return -np.inf
        whitened = solve_triangular(factor, self.seen, lower=True, check_finite=False)
        return float(-0.5 * whitened @ whitened - np.log(np.diag(factor)).sum())


def _ascent(stretches: Sequence[_Likelihood], sweeps: int = 2) -> Scales:
    tried = [LEVELS] + [SCALES] * 4
    scales = [float(each[len(each) // 2]) for each in tried]
    for _ in range(sweeps):
        for part, candidates in enumerate(tried):
            found = np.zeros(len(candidates))
            for stretch in stretches:
                other = stretch.beside(scales, part)
                found += [stretch(other + size * stretch.parts[part]) for size in candidates]
            scales[part] = float(candidates[int(np.argmax(found))])
    return tuple(scales)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Shares of records up to some cells.

    Args:
        cells: Shape (p,).
        mean: Shape (p,).
        covariance: Shape (p, p).
    """

    cells: FloatArray
    mean: FloatArray
    covariance: FloatArray


def share(
    history: History, scales: Scales, weights: dict[int, float], cells: FloatArray
) -> Estimate:
    """Weighted sum of the distributions of batches, of the records that were there.

    The value is the mean of two estimates, weighed by precision: the regression, and the period's
    own pooled counts, which err in other ways. Where batches move as no kernel does, the regression
    knows little by its own account, and the counts decide.

    A long period is solved for in pieces, each with the batches around it; what the pieces get
    wrong is taken as independent, but for the shape of the base, which they share.

    Args:
        history: Of the batches and those around them.
        scales: Of its kernels.
        weights: Of batches, by place; their sum is 1.
        cells: At or below which.
    """
    places = np.array(sorted(weights))
    around = _around(history, places)
    base = history.base(around)
    mean, covariance = np.zeros(len(cells)), np.zeros((len(cells), len(cells)))
    pieces = -(-len(places) // PIECE) if len(places) > MOST_AT_ONCE else 1
    for piece in np.array_split(places, pieces):
        solved = history.solved(_around(history, piece), scales, around)
        weight = np.array([weights[int(place)] for place in piece])
        across = weight @ history.among(scales, piece, solved.places)
        among = float(weight @ history.among(scales, piece, piece) @ weight)
        part = _estimate(solved, cells, float(weight.sum()), across, among)
        mean, covariance = mean + part.mean, covariance + part.covariance
    own = history.base(places)(cells)
    model = np.diag(covariance + _shape(base, cells)).clip(1e-12)
    counted = _counted(history, weights, cells)
    part = counted / (counted + model)
    # Both err from the same noise: deviations add up, and so does how far the two lie apart.
    deviation = part * np.sqrt(model) + (1.0 - part) * np.sqrt(counted)
    variance = deviation**2 + part * (1.0 - part) * (mean - own) ** 2
    whole = covariance * np.multiply.outer(part, part)
    whole[np.diag_indices_from(whole)] = variance
    return Estimate(cells, part * mean + (1.0 - part) * own, whole)


def _counted(history: History, weights: dict[int, float], cells: FloatArray) -> FloatArray:
    """Variance of a period's pooled counts: their noise, and what lies between a batch's cuts.

    What lies between the cuts is taken to be the same mistake in all batches.
    """
    noise, within = np.zeros(len(cells)), np.zeros(len(cells))
    for place, weight in weights.items():
        batch = history.shares[place]
        order = np.argsort(batch.cells, kind="stable")
        cuts, last = batch.cells[order], len(order) - 1
        above = np.searchsorted(cuts, cells, side="right")
        one, other = (above - 1).clip(0), above.clip(max=last)
        apart = np.maximum(cuts[other] - cuts[one], 1e-9)
        part = ((cells - cuts[one]) / apart).clip(0.0, 1.0)
        among = batch.noise[np.ix_(order, order)]
        noise += weight**2 * (
            (1.0 - part) ** 2 * among[one, one]
            + 2.0 * part * (1.0 - part) * among[one, other]
            + part**2 * among[other, other]
        )
        shares = np.maximum.accumulate(batch.shares[order]).clip(0.0, 1.0)
        ends = np.concatenate(([0.0], shares, [1.0]))
        within += weight * np.sqrt(gap(ends[above], alone(batch, cells), ends[above + 1]))
    return np.asarray(noise + (WITHIN * within) ** 2 + 1e-12)


def ahead(history: History, scales: Scales, at: float, cells: FloatArray) -> Estimate:
    """The distribution of a batch that is not there yet and begins at a day."""
    places = np.arange(len(history.at))[-CONTEXT:]
    solved = history.solved(places, scales, places)
    own, size = np.array([at]), float(np.median(history.sizes[places]))
    parts = kernels(own, history.at[places])
    across = sum(scale * each for scale, each in zip(scales, parts, strict=True))
    among = max(float(sum(scales)) + 1.0 / size, _spread(history, solved))
    found = _estimate(solved, cells, 1.0, np.asarray(across)[0], among)
    shape = _shape(solved.base, cells)
    return Estimate(cells, found.mean, found.covariance + shape)


def _spread(history: History, solved: Solved) -> float:
    """Variance of batches about the base, over that of a bridge: what was seen, less its noise.

    Batches that move as a whole move further at each quantile than the scales tell, which follow
    what differs between neighbouring cuts too.
    """
    seen = np.concatenate([history.shares[place].shares for place in np.unique(solved.batch)])
    noise = np.concatenate(
        [np.diag(history.shares[place].noise) for place in np.unique(solved.batch)]
    )
    moved = (seen - solved.shares) ** 2 - noise
    return float(moved.sum() / (solved.shares * (1.0 - solved.shares)).sum())


def _around(history: History, places: IntArray) -> IntArray:
    """Batches of a period and those before and behind it."""
    context = CONTEXT if len(places) <= MOST_AT_ONCE else PIECE // 2
    first, last = max(int(places[0]) - context, 0), int(places[-1]) + 1 + context
    return np.arange(first, min(last, len(history.at)))


def _estimate(
    solved: Solved, cells: FloatArray, whole: float, across: FloatArray, among: float
) -> Estimate:
    """Shares of what has covariance `across` with each batch, and `among` with itself."""
    at = solved.base(cells)
    known = bridge(at, solved.shares) * across[np.searchsorted(solved.places, solved.batch)]
    half = solve_triangular(solved.factor, known.T, lower=True, check_finite=False)
    mean = whole * at + known @ solved.weights
    return Estimate(cells, mean, bridge(at, at) * among - half.T @ half)


def _shape(base: Base, cells: FloatArray) -> FloatArray:
    """Covariance of what the base guesses between neighbouring cuts of all batches."""
    at = base(cells)
    ends = np.concatenate(([0.0], base.cut_shares, [1.0]))
    above = np.searchsorted(ends, at).clip(1, len(ends) - 1)
    return np.diag(SHAPE * gap(ends[above - 1], at, ends[above]))


def gap(low: FloatArray, at: FloatArray, high: FloatArray) -> FloatArray:
    """Variance of a bridge between two places, at a place between them."""
    return np.asarray((at - low).clip(0) * (high - at).clip(0) / np.maximum(high - low, 1e-9))
