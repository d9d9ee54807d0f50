"""Distributions of periods, by Gaussian regression over days (kriging).

A batch t of n_t records has the distribution function F_t = F + G_t, with F the base and

    Cov(G_s(x), G_t(y)) = D(F(x), F(y)) · k(s, t) + B(F(x), F(y)) · (c + [s = t]/n_t),
    k = a_0 + a_1·e^(-d/45) + a_2·e^(-d/6) + a_3·[same weekday]·e^(-d/180) + a_4·[s = t],
    D = r·B + (1 - r)·S,    B(u, v) = min(u, v) - u·v,    S(u, v) = 12·∫B(u, w)·B(w, v) dw,

d in days. B is the covariance of a Brownian bridge: that of chance records, and of c, what the base
gets wrong between cuts (piles of equal values), in all batches alike. S is smooth: a process that
moves or widens the values moves neighbouring cuts together. Noisy shares are linear in F_t and the
law of their noise is known, so the mean of a period, of a difference of periods, or of a batch to
come, and its variance, follow from one linear system. The a, r and c are fitted to each history by
marginal likelihood.

References:
    C. E. Rasmussen and C. K. I. Williams. Gaussian Processes for Machine Learning, 2006, chapter 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf

from streamdp.answers.base import Base, daily, pooled
from streamdp.answers.counted import Counted, Shares, diagonal, shares_of, sizes
from streamdp.types import FloatArray, IntArray

SLOW, FAST, WEEKS = 45.0, 6.0, 180.0
"""Days in which a deviation is forgotten."""

LEVELS = np.array([0.03, 0.1, 0.3, 0.6]) ** 2
SCALES = np.array([0.0, 0.01, 0.03, 0.07, 0.15, 0.3, 0.6, 1.2, 2.4]) ** 2
"""Variances that are tried: of the level that all batches share, and of each other kernel."""

ROUGH = (0.0, 0.03, 0.1, 0.3, 1.0)
"""r that are tried."""

SHAPES = np.array([0.05, 0.08, 0.13, 0.2, 0.32, 0.55]) ** 2
"""c that are tried. None is 0: that nothing lies between cuts cannot be seen."""

UNREFUTED = 2.0
"""Log-likelihood below the largest down to which the counts do not refute a c."""

WINDOW, MOST_WINDOWS, FEW_CUTS = 35, 8, 5
"""Batches of a stretch that a and r are fitted on, how many stretches, and cuts of each batch."""

LONG, MOST_LONG, MANY_CUTS = 100, 2, 9
"""Batches, stretches and cuts that c is fitted on: only many cuts tell what lies between them."""

TAIL = 0.06**2
"""Variance of what lies beyond the usual outermost cuts, over that of a bridge: it is guessed."""

CONTEXT, MOST_AT_ONCE = 42, 62
"""Batches before and behind a period that tell of it, and the longest that is solved at once."""

PIECE, NEXT_TO_PIECE = 28, 14
"""Batches of the pieces of longer periods, and those before and behind that tell of a piece."""


@dataclass(frozen=True, slots=True)
class Scales:
    """What is fitted to a history.

    Args:
        kernels: a, of each kernel of days.
        rough: r, the part of them that is as rough as a bridge.
        shape: c, of what the base gets wrong between cuts.
    """

    kernels: tuple[float, ...]
    rough: float
    shape: float


def bridge(one: FloatArray, other: FloatArray) -> FloatArray:
    """B of the Brownian bridge."""
    found = np.minimum.outer(one, other)
    found -= np.multiply.outer(one, other)
    return np.asarray(found)


def deviation(one: FloatArray, other: FloatArray, rough: float) -> FloatArray:
    """D: how the process that makes the records deviates from the base.

    With u the lower and v the higher place, B is u·(1 - v) and S is 2·B·(v·(2 - v) - u²).
    """
    found = np.maximum.outer(one * (2.0 - one), other * (2.0 - other))
    found -= np.minimum.outer(one**2, other**2)
    found *= 2.0 * (1.0 - rough)
    found += rough
    found *= bridge(one, other)
    return np.asarray(found)


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
        """Scales of largest marginal likelihood, over stretches spread evenly over the history.

        Of c it is the largest that is not refuted: few cuts tell of it, and where it is too small
        the intervals are too narrow.
        """
        count = len(self.batches)
        firsts = np.arange(0, max(count - WINDOW // 2, 1), WINDOW)
        if len(firsts) > MOST_WINDOWS:
            firsts = firsts[np.linspace(0, len(firsts) - 1, MOST_WINDOWS).astype(int)]
        stretches = [np.arange(first, min(first + WINDOW, count)) for first in firsts.tolist()]
        scales = _ascent([_Likelihood.of(self, each, FEW_CUTS) for each in stretches])
        pieces = min(max(round(count / LONG), 1), MOST_LONG)
        length = min(LONG, count // pieces)
        firsts = np.linspace(0, count - length, pieces).astype(int)
        stretches = [np.arange(first, first + length) for first in firsts.tolist()]
        return _shaped(scales, [_Likelihood.of(self, each, MANY_CUTS) for each in stretches])

    def solved(self, places: IntArray, scales: Scales, of: IntArray) -> Solved:
        """The regression on some batches, with the base of others around them."""
        key = places.tobytes(), of.tobytes(), scales
        if key not in self._solved:
            self._solved[key] = self._solve(places, scales, self.base(of))
        return self._solved[key]

    def among(
        self, scales: Scales, one: IntArray, other: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Factors of D and of B between some batches and others."""
        parts = kernels(self.at[one], self.at[other])
        found = sum(scale * each for scale, each in zip(scales.kernels, parts, strict=True))
        chance = np.equal.outer(one, other) / self.sizes[other]
        return np.asarray(found), np.asarray(scales.shape + chance)

    def _solve(self, places: IntArray, scales: Scales, base: Base) -> Solved:
        found = [self.shares[place] for place in places]
        batch = np.repeat(places, [len(each.cells) for each in found])
        shares = base(np.concatenate([each.cells for each in found]))
        seen = np.concatenate([each.shares for each in found])
        noise = diagonal([each.noise for each in found])
        noise[np.diag_indices_from(noise)] += 1e-8 + 0.25 / self.sizes[batch] ** 2
        own = np.searchsorted(places, batch)
        process, chance = (each[np.ix_(own, own)] for each in self.among(scales, places, places))
        noise += deviation(shares, shares, scales.rough) * process
        noise += bridge(shares, shares) * chance
        factor, _ = cho_factor(noise, lower=True)
        return Solved(base, places, batch, shares, factor, cho_solve((factor, True), seen - shares))


@dataclass(frozen=True, slots=True, eq=False)
class _Likelihood:
    """The marginal likelihood of scales on a stretch of batches, from some cuts of each.

    Args:
        seen: Shares, less those of the base.
        shares: Of the base at the cuts.
        fixed: Covariance of noise and chance records.
        days: Kernels of days, between the batches of the shares.
    """

    seen: FloatArray
    shares: FloatArray
    fixed: FloatArray
    days: tuple[FloatArray, ...]

    @classmethod
    def of(cls, history: History, places: IntArray, cuts: int) -> _Likelihood:
        """Build the marginal likelihood of some batches.

        The base is the first round: later ones follow the counts, and would hide what lies between.
        """
        found = [history.shares[place] for place in places]
        base = daily(found, history.sizes[places])
        seen, shares, noise = [], [], []
        for each in found:
            count = len(each.cells)
            few = each.staged[np.unique(np.linspace(0, count - 1, min(count, cuts)).astype(int))]
            at = base(each.cells[few])
            seen.append(each.shares[few] - at)
            shares.append(at)
            noise.append(each.noise[np.ix_(few, few)])
        of, u = np.repeat(places, [len(each) for each in seen]), np.concatenate(shares)
        chance = np.equal.outer(of, of) / history.sizes[of]
        fixed = diagonal(noise) + bridge(u, u) * chance
        fixed[np.diag_indices_from(fixed)] += 1e-8 + 0.25 / history.sizes[of] ** 2
        own = np.searchsorted(places, of)
        days = kernels(history.at[places], history.at[places])
        return cls(np.concatenate(seen), u, fixed, tuple(each[np.ix_(own, own)] for each in days))

    def parts(self, rough: float) -> tuple[FloatArray, ...]:
        """Covariances that a and c scale, in this order."""
        moved = deviation(self.shares, self.shares, rough)
        return (*(moved * each for each in self.days), bridge(self.shares, self.shares))

    def covariance(
        self, parts: Sequence[FloatArray], scales: Sequence[float], without: int | None = None
    ) -> FloatArray:
        """The covariance of shares, without one of its parts."""
        whole = self.fixed.copy()
        for number, (part, scale) in enumerate(zip(parts, scales, strict=True)):
            if number != without and scale:
                whole += scale * part
        return whole

    def __call__(self, covariance: FloatArray) -> float:
        factor, failed = dpotrf(covariance, lower=True)
        if failed:
            return -np.inf
        whitened = solve_triangular(factor, self.seen, lower=True, check_finite=False)
        return float(-0.5 * whitened @ whitened - np.log(np.diag(factor)).sum())


def _ascent(stretches: Sequence[_Likelihood], sweeps: int = 2) -> Scales:
    tried = [LEVELS, *[SCALES] * 4, SHAPES]
    scales = [float(each[len(each) // 2]) for each in tried]
    rough = ROUGH[len(ROUGH) // 2]
    for sweep in range(sweeps):
        # The first finds where to begin: half of many stretches tell.
        some = stretches if sweep or len(stretches) < MOST_WINDOWS else stretches[::2]
        parts = [each.parts(rough) for each in some]
        for number, candidates in enumerate(tried):
            found = np.zeros(len(candidates))
            for stretch, own in zip(some, parts, strict=True):
                other = stretch.covariance(own, scales, number)
                found += [stretch(other + size * own[number]) for size in candidates]
            scales[number] = float(candidates[int(np.argmax(found))])
        likely = [
            sum(each(each.covariance(each.parts(part), scales)) for each in some) for part in ROUGH
        ]
        rough = ROUGH[int(np.argmax(likely))]
    return Scales(tuple(scales[:-1]), rough, scales[-1])


def _shaped(scales: Scales, stretches: Sequence[_Likelihood]) -> Scales:
    """Return the scales with the largest c whose likelihood is close to the maximum."""
    likely = np.zeros(len(SHAPES))
    for each in stretches:
        parts = each.parts(scales.rough)
        other = each.covariance(parts, (*scales.kernels, scales.shape), len(parts) - 1)
        likely += [each(other + shape * parts[-1]) for shape in SHAPES]
    return replace(scales, shape=float(SHAPES[likely >= likely.max() - UNREFUTED].max()))


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
    wrong is taken as independent, but for what lies between the cuts of all of them.

    Args:
        history: Of the batches and those around them.
        scales: Of its kernels.
        weights: Of batches, by place; their sum is 1.
        cells: At or below which.
    """
    places = np.array(sorted(weights))
    pieces = -(-len(places) // PIECE) if len(places) > MOST_AT_ONCE else 1
    context = CONTEXT if pieces == 1 else NEXT_TO_PIECE
    around = _around(history, places, context)
    mean, covariance = np.zeros(len(cells)), np.zeros((len(cells), len(cells)))
    for piece in np.array_split(places, pieces):
        solved = history.solved(_around(history, piece, context), scales, around)
        weight = np.array([weights[int(place)] for place in piece])
        across = [weight @ each for each in history.among(scales, piece, solved.places)]
        among = [float(weight @ each @ weight) for each in history.among(scales, piece, piece)]
        part = _estimate(solved, scales.rough, cells, float(weight.sum()), across, among)
        mean, covariance = mean + part.mean, covariance + part.covariance
    own = history.base(places)(cells)
    if pieces > 1:
        covariance += np.diag(scales.shape * _between(history.base(around), cells))
    model = np.diag(covariance).clip(1e-12)
    counted = _counted(history, scales, weights, cells)
    apart = (mean - own) ** 2
    # Where the two lie far apart the regression misses: batches move as no kernel does.
    likely = np.maximum(model, apart / 9 - counted)
    part = counted / (counted + likely)
    # The regression holds all that the counts do, so its variance is the covariance of both, and
    # their difference has what is left. What they lie further apart is a mistake of the regression.
    model = np.maximum(model, apart - np.abs(counted - model))
    both = 2.0 * part * (1.0 - part) * np.minimum(model, counted)
    variance = part**2 * model + (1.0 - part) ** 2 * counted + both
    variance += TAIL * _beyond(history, places, cells)
    whole = covariance * np.multiply.outer(part, part)
    whole[np.diag_indices_from(whole)] = variance
    return Estimate(cells, part * mean + (1.0 - part) * own, whole)


def _counted(
    history: History, scales: Scales, weights: dict[int, float], cells: FloatArray
) -> FloatArray:
    """Variance of a period's pooled counts: their noise, and what lies between a batch's cuts.

    What equal values make between the cuts is taken to be the same mistake in all batches.
    """
    noise, within = np.zeros(len(cells)), np.zeros(len(cells))
    rough = scales.rough * sum(scales.kernels[1:])
    for place, weight in weights.items():
        batch = history.shares[place]
        cuts, last = batch.cells, len(batch.cells) - 1
        above = np.searchsorted(cuts, cells, side="right")
        one, other = (above - 1).clip(0), above.clip(max=last)
        apart = np.maximum(cuts[other] - cuts[one], 1e-9)
        part = ((cells - cuts[one]) / apart).clip(0.0, 1.0)
        among = batch.noise
        noise += weight**2 * (
            (1.0 - part) ** 2 * among[one, one]
            + 2.0 * part * (1.0 - part) * among[one, other]
            + part**2 * among[other, other]
        )
        shares = np.maximum.accumulate(batch.shares).clip(0.0, 1.0)
        ends = np.concatenate(([0.0], shares, [1.0]))
        free = gap(ends[above], batch.cdf(cells), ends[above + 1])
        within += weight * np.sqrt(scales.shape * free)
        noise += weight**2 * (rough + 1.0 / history.sizes[place]) * free
    return np.asarray(noise + within**2 + 1e-12)


def ahead(history: History, scales: Scales, at: float, cells: FloatArray) -> Estimate:
    """The distribution of a batch that is not there yet and begins at a day.

    It may go where no batch has been: there S is hardly above 0, so all of D is B.
    """
    scales = replace(scales, rough=1.0)
    places = np.arange(len(history.at))[-CONTEXT:]
    solved = history.solved(places, scales, places)
    own, size = np.array([at]), float(np.median(history.sizes[places]))
    parts = kernels(own, history.at[places])
    across = np.asarray(sum(a * each for a, each in zip(scales.kernels, parts, strict=True)))
    among = max(sum(scales.kernels), _spread(history, solved) - 1.0 / size - scales.shape)
    shared = np.full(len(places), scales.shape)
    return _estimate(
        solved, scales.rough, cells, 1.0, (across[0], shared), (among, scales.shape + 1.0 / size)
    )


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


def _around(history: History, places: IntArray, context: int) -> IntArray:
    """Batches of a period and so many before and behind it."""
    first, last = max(int(places[0]) - context, 0), int(places[-1]) + 1 + context
    return np.arange(first, min(last, len(history.at)))


def _estimate(
    solved: Solved,
    rough: float,
    cells: FloatArray,
    whole: float,
    across: Sequence[FloatArray],
    among: Sequence[float],
) -> Estimate:
    """Estimate a cdf, given the factors of its covariances with each batch and itself."""
    at, own = solved.base(cells), np.searchsorted(solved.places, solved.batch)
    known = deviation(at, solved.shares, rough) * across[0][own]
    known += bridge(at, solved.shares) * across[1][own]
    half = solve_triangular(solved.factor, known.T, lower=True, check_finite=False)
    mean = whole * at + known @ solved.weights
    alone = deviation(at, at, rough) * among[0] + bridge(at, at) * among[1]
    return Estimate(cells, mean, alone - half.T @ half)


def _beyond(history: History, places: IntArray, cells: FloatArray) -> FloatArray:
    """Variance of a bridge from the usual outermost cuts of some batches to where nothing is."""
    base = history.base(places)
    at, (low, high) = base(cells), outermost(history, places)
    none, all_ = np.zeros(len(at)), np.ones(len(at))
    return np.where(at < low, gap(none, at, low * all_), gap(high * all_, at, all_))


def outermost(history: History, places: IntArray) -> tuple[float, float]:
    """Shares at the usual lowest and highest cut, the lower and higher quarter of batches."""
    base = history.base(places)
    cells = [history.shares[place].cells for place in places]
    low = np.quantile(base(np.array([each.min() for each in cells])), 0.25)
    high = np.quantile(base(np.array([each.max() for each in cells])), 0.75)
    return float(low), float(high)


def _between(base: Base, cells: FloatArray) -> FloatArray:
    """Variance of a bridge between neighbouring cuts of all batches."""
    at = base(cells)
    ends = np.concatenate(([0.0], base.cut_shares, [1.0]))
    above = np.searchsorted(ends, at).clip(1, len(ends) - 1)
    return gap(ends[above - 1], at, ends[above])


def gap(low: FloatArray, at: FloatArray, high: FloatArray) -> FloatArray:
    """Variance of a bridge between two places, at a place between them."""
    return np.asarray((at - low).clip(0) * (high - at).clip(0) / np.maximum(high - low, 1e-9))
