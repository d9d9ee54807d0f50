"""Distributions of periods, by Gaussian regression over days (kriging).

A batch t of n_t records has the distribution function F_t = F + G_t, with F the base and

    Cov(G_s(x), G_t(y)) = D(F(x), F(y)) · k(s, t) + B(F(x), F(y)) · (c + [s = t](1/n_t + x_t)),
    k = a_0 + a_1·e^(-d/45) + a_2·e^(-d/6) + a_3·[same weekday]·e^(-d/180) + a_4·[s = t],
    D = r·B + (1 - r)·S,    B(u, v) = min(u, v) - u·v,    S(u, v) = 12·∫B(u, w)·B(w, v) dw,

d in days. B is the covariance of a Brownian bridge: that of chance records, and of c, what the base
gets wrong between cuts (piles of equal values), in all batches alike. x_t is 0, but for a batch
that lies where no other does, which tells nothing of the others. S is smooth: a process that
moves or widens the values moves neighbouring cuts together. Noisy shares are linear in F_t and the
law of their noise is known, so the mean of a period, of a difference of periods, or of a batch to
come, and its variance, follow from one linear system. The a, r and c are fitted to each history by
marginal likelihood.

References:
    C. E. Rasmussen and C. K. I. Williams. Gaussian Processes for Machine Learning, 2006, chapter 5.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from streamdp.answers.base import Base, daily, pooled
from streamdp.answers.counted import Counted, NoisyNumber, Shares, Sizes, diagonal, shares_of, sizes
from streamdp.types import FloatArray, IntArray

SLOW, FAST, WEEKS = 45.0, 6.0, 180.0
"""Days in which a deviation is forgotten."""

LEVELS = np.array([0.03, 0.1, 0.3, 0.6]) ** 2
SCALES = np.array([0.0, 0.01, 0.03, 0.07, 0.15, 0.3, 0.6, 1.2, 2.4]) ** 2
"""Variances that are tried: of the level that all batches share, and of each other kernel."""

ROUGH = (0.0, 0.03, 0.1, 0.3, 1.0)
"""r that are tried."""

SHAPES = np.array([0.02, 0.03, 0.05, 0.08, 0.13, 0.2, 0.32, 0.55]) ** 2
"""c that are tried. None is 0: that nothing lies between cuts cannot be seen."""

UNREFUTED = 2.0
"""Log-likelihood below the largest down to which the counts do not refute a c."""

WINDOW, MOST_WINDOWS, FEW_CUTS = 35, 8, 5
"""Batches of a stretch that a and r are fitted on, how many stretches, and cuts of each batch."""

LONG, MOST_LONG, MANY_CUTS = 100, 2, 9
"""Batches, stretches and cuts that c is fitted on: only many cuts tell what lies between them."""

TAIL = 0.06**2
"""Variance of what lies beyond the usual outermost cuts, over that of a bridge: it is guessed."""

UNSEEN = 0.12**2
"""The same between neighbouring cuts of all batches: no count tells what lies where none is cut."""

COMPARED = np.arange(1, 20) / 20.0
"""Shares at which the regression and the counts of a period are compared."""

CONTEXT, MOST_AT_ONCE = 42, 62
"""Batches before and behind a period that tell of it, and the longest that is solved at once."""

STRANGE = 4.0
"""Squared deviations a cut, beyond what the law of days explains, from which a batch is strange."""

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
    """B of the Brownian bridge, of pairs of places."""
    found = np.minimum(one, other)
    found -= one * other
    return found


def smooth(one: FloatArray, other: FloatArray) -> FloatArray:
    """S over B, of pairs of places: with u the lower and v the higher, 2·(v·(2 - v) - u²)."""
    found = np.maximum(one * (2.0 - one), other * (2.0 - other))
    found -= np.minimum(one**2, other**2)
    found *= 2.0
    return found


def deviation(one: FloatArray, other: FloatArray, rough: float) -> FloatArray:
    """D: how the process that makes the records deviates from the base, of pairs of places."""
    return _covariance(one, other, rough, np.array(1.0), np.array(0.0))


def _covariance(
    one: FloatArray, other: FloatArray, rough: float, process: FloatArray, chance: FloatArray
) -> FloatArray:
    """Return D·process + B·chance, of pairs of places."""
    found = smooth(one, other)
    found *= 1.0 - rough
    found += rough
    found *= process
    found += chance
    found *= bridge(one, other)
    return found


def _repeated(between: FloatArray, cuts: IntArray) -> FloatArray:
    """What holds between batches, between the cuts of each."""
    return between.repeat(cuts, axis=0).repeat(cuts, axis=1)


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
        cuts: How many shares each has, shape (batches,).
        shares: F at its cut, shape (k,).
        alone: x, of each batch, shape (batches,).
        factor: Lower Cholesky factor of the covariance of shares; above it is anything.
        weights: That covariance, solved for the deviations of shares from F.
    """

    base: Base
    places: IntArray
    cuts: IntArray
    shares: FloatArray
    alone: FloatArray
    factor: FloatArray
    weights: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class BatchHistory:
    """Counted batches of one question, in order of time.

    Args:
        batches: At least one; each has at least one cut.
    """

    batches: tuple[Counted, ...]
    at: FloatArray = field(init=False)
    shares: tuple[Shares, ...] = field(init=False)
    _sizes: Sizes = field(init=False)
    _bases: dict[bytes, Base] = field(init=False, default_factory=dict)
    _solved: dict[tuple[bytes, bytes, Scales], Solved] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        found = sizes(self.batches)
        shares = tuple(map(shares_of, self.batches, found.likely.tolist()))
        object.__setattr__(self, "at", np.array([each.at for each in self.batches]))
        object.__setattr__(self, "_sizes", found)
        object.__setattr__(self, "shares", shares)

    @property
    def sizes(self) -> FloatArray:
        """Likely number of records of each batch, at least 1, shape (batches,)."""
        return self._sizes.likely

    def records(self, places: IntArray) -> NoisyNumber:
        """The likely number of records of some batches, and its variance."""
        return self._sizes.together(places)

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
        cuts = np.array([len(each.cells) for each in found])
        batch = np.repeat(places, cuts)
        shares = base(np.concatenate([each.cells for each in found]))
        seen = np.concatenate([each.shares for each in found])
        noise = diagonal([each.noise for each in found])
        noise[np.diag_indices_from(noise)] += 1e-8 + 0.25 / self.sizes[batch] ** 2
        process, chance = self.among(scales, places, places)
        whole = _covariance(
            shares[:, None], shares, scales.rough, _repeated(process, cuts), _repeated(chance, cuts)
        )
        whole += noise
        alone = _alone(seen - shares, shares, whole, cuts)
        for (first, last), own in zip(_spans(cuts), alone.tolist(), strict=True):
            if own > 0.0:
                u = shares[first:last]
                whole[first:last, first:last] += own * bridge(u[:, None], u)
        factor = _factor(whole)
        weights, _ = dpotrs(factor, seen - shares, lower=True)
        return Solved(base, places, cuts, shares, alone, factor, weights)


def _spans(cuts: IntArray) -> list[tuple[int, int]]:
    """First share of each batch, and the one after its last."""
    ends = [0, *np.cumsum(cuts).tolist()]
    return list(itertools.pairwise(ends))


def _alone(
    off: FloatArray, shares: FloatArray, covariance: FloatArray, cuts: IntArray
) -> FloatArray:
    """x, of each batch: by how much it varies more than the law of all explains, over a bridge."""
    found = np.zeros(len(cuts))
    for number, (first, last) in enumerate(_spans(cuts)):
        own, each, u = off[first:last], covariance[first:last, first:last], shares[first:last]
        if own @ np.linalg.solve(each, own) > STRANGE * len(own):
            moved = float((own**2 - np.diag(each)).sum() / (u * (1.0 - u)).sum())
            found[number] = max(moved, 0.0)
    return found


def _factor(covariance: FloatArray) -> FloatArray:
    """The lower Cholesky factor of a covariance, which is overwritten; above it is anything."""
    factor, failed = dpotrf(covariance.T, lower=True, clean=False, overwrite_a=True)
    if failed:
        raise np.linalg.LinAlgError("a covariance of shares is not positive definite")
    return np.asarray(factor)


@dataclass(frozen=True, slots=True, eq=False)
class _Likelihood:
    """The marginal likelihood of scales on a stretch of batches, from some cuts of each.

    Args:
        seen: Shares, less those of the base.
        shares: Of the base at the cuts.
        fixed: Covariance of noise and chance records.
        cuts: How many shares each batch has.
        days: Kernels of days, between batches.
        bridged: B between the shares.
        smooth: S between them.
    """

    seen: FloatArray
    fixed: FloatArray
    cuts: IntArray
    days: tuple[FloatArray, ...]
    bridged: FloatArray
    smooth: FloatArray

    @classmethod
    def of(cls, history: BatchHistory, places: IntArray, cuts: int) -> _Likelihood:
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
        counts, u = np.array([len(each) for each in seen]), np.concatenate(shares)
        size = np.repeat(history.sizes[places], counts)
        bridged = bridge(u[:, None], u)
        fixed = diagonal([np.full((n, n), 1.0) for n in counts.tolist()])
        fixed *= bridged
        fixed /= size
        fixed += diagonal(noise)
        fixed[np.diag_indices_from(fixed)] += 1e-8 + 0.25 / size**2
        days = kernels(history.at[places], history.at[places])
        seen_less = np.concatenate(seen)
        return cls(seen_less, fixed, counts, tuple(days), bridged, bridged * smooth(u[:, None], u))

    def moved(self, rough: float) -> FloatArray:
        """D between the shares."""
        return np.asarray(rough * self.bridged + (1.0 - rough) * self.smooth)

    def part(self, number: int, moved: FloatArray) -> FloatArray:
        """The covariance that one of the scales, a and c, is a factor of."""
        if number == len(self.days):
            return self.bridged
        return moved * _repeated(self.days[number], self.cuts)

    def covariance(
        self, moved: FloatArray, scales: Sequence[float], without: int | None = None
    ) -> FloatArray:
        """The covariance of shares, without one of its parts."""
        kept = [0.0 if number == without else scale for number, scale in enumerate(scales)]
        process = sum(scale * each for scale, each in zip(kept, self.days, strict=False))
        whole = moved * _repeated(np.asarray(process), self.cuts)
        whole += kept[-1] * self.bridged
        whole += self.fixed
        return np.asarray(whole)

    def __call__(self, covariance: FloatArray) -> float:
        """The logarithm of the likelihood, but for a constant; the covariance is overwritten."""
        factor, failed = dpotrf(covariance.T, lower=True, clean=False, overwrite_a=True)
        if failed:
            return -np.inf
        whitened, _ = dtrtrs(factor, self.seen, lower=True)
        return float(-0.5 * whitened @ whitened - np.log(np.diag(factor)).sum())


def _ascent(stretches: Sequence[_Likelihood], sweeps: int = 2) -> Scales:
    tried = [LEVELS, *[SCALES] * 4, SHAPES]
    scales = [float(each[len(each) // 2]) for each in tried]
    rough = ROUGH[len(ROUGH) // 2]
    for sweep in range(sweeps):
        # The first finds where to begin: half of many stretches tell.
        some = stretches if sweep or len(stretches) < MOST_WINDOWS else stretches[::2]
        moved = [each.moved(rough) for each in some]
        for number, candidates in enumerate(tried):
            found = np.zeros(len(candidates))
            for stretch, own in zip(some, moved, strict=True):
                other = stretch.covariance(own, scales, number)
                part = stretch.part(number, own)
                found += [stretch(other + size * part) for size in candidates]
            scales[number] = float(candidates[int(np.argmax(found))])
        likely = [
            sum(each(each.covariance(each.moved(part), scales)) for each in some) for part in ROUGH
        ]
        rough = ROUGH[int(np.argmax(likely))]
    return Scales(tuple(scales[:-1]), rough, scales[-1])


def _shaped(scales: Scales, stretches: Sequence[_Likelihood]) -> Scales:
    """Return the scales with the largest c whose likelihood is close to the maximum."""
    likely = np.zeros(len(SHAPES))
    for each in stretches:
        kept = (*scales.kernels, scales.shape)
        other = each.covariance(each.moved(scales.rough), kept, len(each.days))
        likely += [each(other + shape * each.bridged) for shape in SHAPES]
    return replace(scales, shape=float(SHAPES[likely >= likely.max() - UNREFUTED].max()))


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Shares of records up to some cells.

    Args:
        cells: Shape (p,).
        mean: Shape (p,).
        variance: Shape (p,).
        beside: Covariances of neighbouring cells, shape (p - 1,).
    """

    cells: FloatArray
    mean: FloatArray
    variance: FloatArray
    beside: FloatArray


def share(
    history: BatchHistory, scales: Scales, weights: dict[int, float], cells: FloatArray
) -> Estimate:
    """Weighted sum of the distributions of batches, of the records that were there.

    The value is the mean of two estimates, weighed by precision: the regression, and the period's
    own pooled counts, which err in other ways.

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
    counts = history.base(places)
    asked, cells = len(cells), np.concatenate((cells, counts.places(COMPARED)))
    mean, model, beside = np.zeros(len(cells)), np.zeros(len(cells)), np.zeros(len(cells) - 1)
    for piece in np.array_split(places, pieces):
        solved = history.solved(_around(history, piece, context), scales, around)
        weight = np.array([weights[int(place)] for place in piece])
        across = [weight @ each for each in history.among(scales, piece, solved.places)]
        among = [float(weight @ each @ weight) for each in history.among(scales, piece, piece)]
        within = np.searchsorted(solved.places, piece)
        across[1][within] += weight * solved.alone[within]
        among[1] += float(weight**2 @ solved.alone[within])
        found = _estimate(solved, scales.rough, cells, float(weight.sum()), across, among)
        mean, model, beside = mean + found.mean, model + found.variance, beside + found.beside
    if pieces > 1:
        model += scales.shape * _between(history.base(around), cells)
    own, counted = counts(cells), _counted(history, scales, weights, cells)
    part, model = _trust(mean - own, own, model.clip(1e-12), counted, asked)
    own, counted, mean, model = (each[:asked] for each in (own, counted, mean, model))
    # The regression holds all that the counts do, so its variance is the covariance of both.
    both = 2.0 * part * (1.0 - part) * np.minimum(model, counted)
    variance = part**2 * model + (1.0 - part) ** 2 * counted + both
    variance += TAIL * _beyond(history, places, cells[:asked])
    variance += UNSEEN * _between(history.base(around), cells[:asked])
    beside = beside[: asked - 1] * part[1:] * part[:-1]
    return Estimate(cells[:asked], part * mean + (1.0 - part) * own, variance, beside)


def _trust(
    apart: FloatArray, own: FloatArray, model: FloatArray, counted: FloatArray, asked: int
) -> tuple[FloatArray, FloatArray]:
    """Weigh the regression, and find its variance, by how far it lies from the counts.

    By its own law the two lie apart by as much as the counts vary more than it does. Where they lie
    farther apart it misses: batches move as no kernel does. How far they lie apart at one place is
    largely chance, so all places tell, and one place counts half.

    Args:
        apart: How far the regression lies above the counts, at cells asked and those compared.
        own: Shares by the counts.
        model: Variance of the regression, by its own account.
        counted: Variance of the counts.
        asked: How many cells were asked; those behind are compared.

    Returns:
        Weight of the regression and its variance, at the cells asked.
    """
    squared = apart**2
    off, noise, said = (float(each[asked:].mean()) for each in (squared, counted, model))
    free = (own * (1.0 - own) / (COMPARED * (1.0 - COMPARED)).mean())[:asked]
    squared, model, counted = squared[:asked], model[:asked], counted[:asked]
    missed = model + max(off / 2.0 - noise, 0.0) * free
    likely = np.maximum(missed, squared / 9.0 - counted)
    model = np.maximum(
        model + max(off / 2.0 - abs(noise - said), 0.0) * free,
        (squared - np.abs(counted - model)) / 2.0,
    )
    return counted / (counted + likely), model


def _counted(
    history: BatchHistory, scales: Scales, weights: dict[int, float], cells: FloatArray
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
        one, other = np.maximum(above - 1, 0), np.minimum(above, last)
        apart = np.maximum(cuts[other] - cuts[one], 1e-9)
        part = np.minimum(np.maximum((cells - cuts[one]) / apart, 0.0), 1.0)
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


def ahead(history: BatchHistory, scales: Scales, at: float, cells: FloatArray) -> Estimate:
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


def _spread(history: BatchHistory, solved: Solved) -> float:
    """Variance of batches about the base, over that of a bridge: what was seen, less its noise.

    Batches that move as a whole move further at each quantile than the scales tell, which follow
    what differs between neighbouring cuts too.
    """
    seen = np.concatenate([history.shares[place].shares for place in solved.places])
    noise = np.concatenate([np.diag(history.shares[place].noise) for place in solved.places])
    moved = (seen - solved.shares) ** 2 - noise
    return float(moved.sum() / (solved.shares * (1.0 - solved.shares)).sum())


def _around(history: BatchHistory, places: IntArray, context: int) -> IntArray:
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
    at = solved.base(cells)
    own = (each.repeat(solved.cuts) for each in across)
    known = _covariance(at[:, None], solved.shares, rough, *own)
    half = solve_triangular(solved.factor, known.T, lower=True, check_finite=False)
    mean = whole * at + known @ solved.weights
    process, chance = map(np.array, among)
    alone = _covariance(at, at, rough, process, chance) - np.einsum("kp,kp->p", half, half)
    beside = _covariance(at[:-1], at[1:], rough, process, chance)
    beside -= np.einsum("kp,kp->p", half[:, :-1], half[:, 1:])
    return Estimate(cells, mean, alone, beside)


def _beyond(history: BatchHistory, places: IntArray, cells: FloatArray) -> FloatArray:
    """Variance of a bridge from the usual outermost cuts of some batches to where nothing is."""
    base = history.base(places)
    at, (low, high) = base(cells), outermost(history, places)
    none, all_ = np.zeros(len(at)), np.ones(len(at))
    return np.where(at < low, gap(none, at, low * all_), gap(high * all_, at, all_))


def outermost(history: BatchHistory, places: IntArray) -> tuple[float, float]:
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
    found = np.maximum(at - low, 0.0) * np.maximum(high - at, 0.0)
    return np.asarray(found / np.maximum(high - low, 1e-9))
