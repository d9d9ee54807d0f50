"""Prior of the cdf of one batch: weighted curves, and a Brownian bridge about its curve.

A batch is taken to have the distribution function F_i + G, i one of many curves. G is a Gaussian
process of mean zero, a Brownian bridge of some deviation s on the marginal distribution: its
covariance between two places is s²·(min(u, v) - u·v) for their marginal shares u and v. It stands
for the records being a sample, and for all that no curve has. Which curve, and which of `SIZES` is
s, is not known: each has a weight. Noisy shares of the records are linear in F_i + G, so the
weights after a release, and G under each of them, follow exactly.

References:
    Rasmussen & Williams 2006, chapter 2 (regression with Gaussian processes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from streamdp.learning.mixture.curves import FLOOR, SHIFTS, STRETCHES, VARIANCES, Curves, bridge
from streamdp.learning.mixture.distribution import TENTH, Distribution, weighted_quantiles
from streamdp.learning.mixture.draw import Draw, Kernel
from streamdp.learning.mixture.evidence import Evidence
from streamdp.learning.mixture.posterior import Posterior, doubt
from streamdp.learning.mixture.records import Number, RecordsPrior
from streamdp.types import BoolArray, FloatArray, Grid, IntArray

LEVELS = np.concatenate(([0.0, 0.01, 0.025], np.arange(2, 39) / 40.0, [0.975, 0.99, 1.0]))
"""Shares at which curves are looked at, to find where they lie."""

_BETWEEN = np.concatenate(([0.0], (LEVELS[1:] + LEVELS[:-1]) / 2.0, [1.0]))
PARTS = np.diff(_BETWEEN)
"""Share of the records about each of them."""

PLACES = 160
"""About how many cells the posterior mean is tabulated at."""

LEAST_WEIGHT = 1e-5
"""Weight of a curve that decides no place."""

BASE_WEIGHT = 0.1
"""Weight of the predictive cdf in the cdf that a release warps, so that it is nowhere flat: a curve
alone may be flat where the records turn out to lie."""

MOST_GAIN = 10.0
"""Cap of (likelihood mean - prior mean)/(posterior mean - prior mean)."""

BROAD = "broad"
"""Name of the curves that rest on nothing but a guess."""

_TAIL = 0.05 * 2.0 ** -np.arange(1.0, 14.0)
TAIL_LEVELS = np.unique(np.concatenate((LEVELS[1:-1], _TAIL, 1.0 - _TAIL)))
"""Levels at which tails are tabulated. They are fixed: interpolation between others would widen the
tails with every release."""

COVERED = 0.9
"""Share of a batch beyond one outermost cut from which on the tail lengths of curves are not used:
it jumped, and they start in the farthest tails."""

LAPLACE_TENTHS = float(2.0 * np.log(5.0))
"""Scales between the outer tenths of Laplace's law."""

SURPRISE = 3.0
"""Deviations of a belief beyond which a release says that it was wrong."""

ROUNDS = 2
"""Fixed-point iterations: the bridge runs on the posterior mean of the iteration before, first on
the prior mean."""


@dataclass(frozen=True)
class Belief:
    """Prior of a batch's cdf: weighted curves, and the sizes of the deviation from them.

    Args:
        grid: Public cells.
        groups: Curves by name, those about the guess last.
        weights: Of all curves, in the order of the groups; they sum to one. Shape (i,).
        size_weights: Weights of `SIZES`; they sum to one.
        records: How many there may be.
        releases: How many there were.
    """

    grid: Grid
    groups: Mapping[str, Curves]
    weights: FloatArray
    size_weights: FloatArray
    records: RecordsPrior
    releases: int

    @cached_property
    def marginal(self) -> Distribution:
        """Predictive cdf of the batch, the weighted mean of the curves."""
        kept = self.weights > LEAST_WEIGHT
        at = self.only(kept).support(self.weights[kept], np.empty(0))
        return Distribution.about(at, self.weights @ self.cdf(at))

    @property
    def learned_count(self) -> int:
        """Number of learned curves; those about the guess follow."""
        return len(self.weights) - len(self.groups[BROAD].moves)

    def only(self, kept: BoolArray) -> Belief:
        """Return some of the curves, with the weights that they have."""
        parts = np.split(kept, np.cumsum([len(each.moves) for each in self.groups.values()])[:-1])
        pairs = zip(self.groups.items(), parts, strict=True)
        groups = {name: Curves(each.of, each.moves[part]) for (name, each), part in pairs}
        return replace(self, groups=groups, weights=self.weights[kept])

    def cdf(self, cells: FloatArray) -> FloatArray:
        """Return the cdf of each curve at some cells, shape (i, c)."""
        return np.concatenate([group.cdf(cells) for group in self.groups.values()])

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """Return the quantiles of each curve at some levels, shape (i, s)."""
        return np.concatenate([group.quantiles(shares) for group in self.groups.values()])

    def centres(self, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the location and scale of a Laplace prior of each quantile; each (m,).

        The location is the weighted median. The scale is the larger of the weighted interdecile
        range over Laplace's and the mean absolute deviation of the learned curves: too wide a prior
        costs a draw less than too narrow a one.
        """
        weights = self.explained(self.weights[:, None])[:, 0]
        kept = weights > LEAST_WEIGHT
        curves, of = self.only(kept), weights[kept]
        places = curves.quantiles(targets)
        tenths = np.array([TENTH, 0.5, 1.0 - TENTH])
        low, middle, high = weighted_quantiles(places, of, tenths)
        off, taught = np.abs(places - middle), of * (np.arange(len(of)) < curves.learned_count)
        mean = taught @ off / max(float(taught.sum()), FLOOR)
        return middle, np.maximum((high - low) / LAPLACE_TENTHS, mean)

    def after(self, evidence: Evidence) -> Update:
        """Return the prior updated by the evidence of a release."""
        finer, parents, predicted = with_finer_moves(self, evidence)
        found, told, weights = finer._conditioned(evidence, self.marginal, predicted)
        of_curves = np.bincount(parents, told.sum(axis=1), len(self.weights)).astype(float)
        found = self._with_tails(found, evidence.cells, of_curves)
        of_curves = np.bincount(parents, weights.sum(axis=1), len(self.weights)).astype(float)
        return Update(self, finer, evidence, found, told, of_curves, weights.sum(axis=0))

    def corrected(
        self, evidence: Evidence, known: PosteriorMean, told: FloatArray
    ) -> PosteriorMean:
        """Return the posterior mean with the error H of the curves in it.

        Without it, what a release says against a curve from which batches hardly deviate would be
        taken for noise, each time anew, and the curve would stay wrong.
        """
        if evidence.draw is not None:
            return known
        marginal = known.distribution()
        there = marginal.cdf(evidence.cells)
        among = evidence.deviations(there) + doubt(self, evidence) * bridge(there, there)
        predicted, inverse = self.cdf(evidence.cells), evidence.inverses(among)
        found = self._mean(evidence, marginal, predicted, told, among, inverse)
        return self._with_tails(found, evidence.cells, told.sum(axis=1))

    def _conditioned(
        self, evidence: Evidence, marginal: Distribution, predicted: FloatArray
    ) -> tuple[PosteriorMean, FloatArray, FloatArray]:
        """Return the posterior mean, the weights in it, and all posterior weights, each (i, k).

        Args:
            evidence: The release.
            marginal: Predictive cdf.
            predicted: The cdf of each curve at the cells of the evidence, shape (i, c).
        """
        off = evidence.y - predicted
        kernel, by_draw = None, None
        if evidence.draw is not None:
            kernel = evidence.draw.kernel(VARIANCES[:, 0, 0])
            by_draw = self.weighed_by_draw(evidence.draw, kernel)
        found = PosteriorMean(np.empty(0), np.empty(0))
        told = weights = np.empty(0)
        for _ in range(ROUNDS):
            among = evidence.deviations(marginal.cdf(evidence.cells))
            inverse = evidence.inverses(among)
            weights = self.weighed(off, inverse) if by_draw is None else by_draw
            told = self.explained(weights)
            found = self._mean(evidence, marginal, predicted, told, among, inverse, kernel)
            marginal = found.distribution()
        return found, told, weights

    def _mean(
        self,
        evidence: Evidence,
        marginal: Distribution,
        predicted: FloatArray,
        told: FloatArray,
        among: FloatArray,
        inverse: FloatArray,
        kernel: Kernel | None = None,
    ) -> PosteriorMean:
        """Return the posterior mean of the cdf, given the posterior weights.

        Args:
            evidence: The release.
            marginal: Cdf of the iteration before.
            predicted: The cdf of each curve at the cells of the evidence, shape (i, c).
            told: Posterior weights of curves and sizes, shape (i, k).
            among: Covariances of the batch about a curve there, shape (k, c, c).
            inverse: Inverse covariances of what is observed, shape (k, c, c).
            kernel: Of a single draw, whose law is used in place of a normal one.
        """
        of_curve, there = told.sum(axis=1), marginal.cdf(evidence.cells)
        kept = of_curve > LEAST_WEIGHT
        likely = told[kept] / told[kept].sum()
        of, before = likely.sum(axis=1), likely.sum(axis=1) @ predicted[kept]
        if kernel is None:
            off = evidence.y - predicted[kept]
            pulled = np.einsum("ik,ic,kcd->kd", likely, off, inverse)
            known = before + np.einsum("kcd,kd->c", among, pulled)
        else:
            known = before + (likely * kernel.at(kernel.means, predicted[kept, 0])).sum()
        curves = self.only(kept)
        at = curves.support(of_curve[kept], evidence.cells)
        curve = (1.0 - BASE_WEIGHT) * before + BASE_WEIGHT * there
        shares = (1.0 - BASE_WEIGHT) * (of @ curves.cdf(at))
        mean = _through(shares + BASE_WEIGHT * marginal.cdf(at), curve, known)
        return PosteriorMean(at, mean)

    def _with_tails(
        self, known: PosteriorMean, cells: FloatArray, weights: FloatArray
    ) -> PosteriorMean:
        """Replace the tails of the posterior mean, which no count covers, by the median curve's.

        The mean over curves is wider than most of them, and would widen with every release that is
        learned from it: distances beyond the cuts are those of the weighted median curve, unless
        hardly any records lie on the other side. Tails stay where curves about the guess have
        weight.

        Args:
            known: Of the batch.
            cells: That evidence is of.
            weights: Of the curves after the release.
        """
        kept = weights > LEAST_WEIGHT
        if kept[self.learned_count :].any() or not len(cells):
            return known
        on_grid = cells.clip(known.cells[0], known.cells[-1])
        first, last = float(on_grid.min()), float(on_grid.max())
        inner = (known.cells >= first) & (known.cells <= last)
        low, high = known.levels[inner][[0, -1]]
        alone = first == last
        left = TAIL_LEVELS[low > TAIL_LEVELS] if alone or low < COVERED else np.empty(0)
        right = TAIL_LEVELS[high < TAIL_LEVELS] if alone or high > 1.0 - COVERED else np.empty(0)
        places = self.only(kept).quantiles(np.concatenate((left, right, [low, high])))
        lengths = places[:, :-2] - np.repeat(places[:, -2:], (len(left), len(right)), axis=1)
        told = weights[kept] / weights[kept].sum()
        away = weighted_quantiles(lengths, told, np.array([0.5]))[0]
        inner |= (known.cells < first) & (not len(left)) | (known.cells > last) & (not len(right))
        places = np.concatenate(
            (first + away[: len(left)], known.cells[inner], last + away[len(left) :])
        )
        shares = np.concatenate((left, known.levels[inner], right))
        places = places.clip(self.grid.lower, self.grid.upper)
        keep = np.append(np.diff(places) > 0.0, True)
        return PosteriorMean(places[keep], shares[keep])

    def explained(self, weights: FloatArray) -> FloatArray:
        """Drop the curves about the guess where learned ones have most of the posterior weight.

        Their tails reach as far as the grid: a hundredth of them would be the last hundredth of a
        batch.

        Args:
            weights: After a release, shape (i, k).
        """
        if weights[: self.learned_count].sum() <= EXPLAINED:
            return weights
        left = weights.copy()
        left[self.learned_count :] = 0.0
        return np.asarray(left / left.sum())

    def weighed(self, off: FloatArray, inverse: FloatArray) -> FloatArray:
        """Return posterior weights w_ik given noisy shares, shape (i, k); they sum to one."""
        return self._posterior_weights(_log_likelihoods(off, inverse))

    def weighed_by_draw(self, draw: Draw, kernel: Kernel) -> FloatArray:
        """Return posterior weights w_ik given a single draw, shape (i, k); they sum to one."""
        levels = self.cdf(np.array([draw.cell]))[:, 0]
        return self._posterior_weights(draw.log_likelihoods(kernel, levels, self.quantiles))

    def _posterior_weights(self, log_likelihoods: FloatArray) -> FloatArray:
        """Return posterior weights of curves and sizes from log likelihoods, both shape (i, k)."""
        logs = log_likelihoods + np.log(np.maximum(self.weights, FLOOR))[:, None]
        logs = logs + np.log(self.size_weights)
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    def support(self, weights: FloatArray, cells: FloatArray) -> FloatArray:
        """Choose about PLACES cells at which the mean cdf is tabulated, and some given ones."""
        flat = self.quantiles(LEVELS).clip(self.grid.lower - 1, self.grid.upper).ravel()
        order = np.argsort(flat)
        sums = np.cumsum((weights[:, None] * PARTS).ravel()[order])
        wanted = np.linspace(0.001, 0.999, PLACES) * sums[-1]
        inner = flat[order][np.searchsorted(sums, wanted).clip(max=len(flat) - 1)]
        first, last = self.grid.lower, max(self.grid.upper - 1, self.grid.lower)
        return np.unique(np.concatenate((np.floor(inner), cells)).clip(first, last))


@dataclass(frozen=True, slots=True, eq=False)
class PosteriorMean:
    """Posterior mean of a batch's cdf, tabulated.

    Args:
        cells: Increasing, shape (p,).
        levels: Of the cdf at each, non-decreasing, shape (p,).
    """

    cells: FloatArray
    levels: FloatArray

    def distribution(self) -> Distribution:
        """Return the cdf as a distribution."""
        return Distribution.about(self.cells, self.levels)


@dataclass(frozen=True, eq=False)
class Update:
    """A prior updated by one release.

    Args:
        before: Belief before it.
        finer: The same, with finer moves about the likeliest curve.
        evidence: The release.
        posterior_mean: Posterior mean of the batch's cdf.
        told: Weights of finer curves and sizes in it, shape (j, k).
        weights: Of the curves, shape (i,).
        size_weights: Of `SIZES`.
    """

    before: Belief
    finer: Belief
    evidence: Evidence
    posterior_mean: PosteriorMean
    told: FloatArray
    weights: FloatArray
    size_weights: FloatArray
    _intervals: dict[tuple[float, ...], tuple[FloatArray, FloatArray]] = field(
        default_factory=dict, repr=False
    )

    @cached_property
    def posterior(self) -> Posterior:
        """Posterior of the quantiles of the batch."""
        return Posterior.of(self.finer, self.evidence, self.posterior_mean)

    @cached_property
    def corrected_mean(self) -> PosteriorMean:
        """Posterior mean of the batch's cdf that curves learn from."""
        return self.finer.corrected(self.evidence, self.posterior_mean, self.told)

    def interval(self, targets: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the interval of each quantile; cached, as rows and state need it."""
        asked = (level, *targets.tolist())
        if asked not in self._intervals:
            self._intervals[asked] = self.posterior.interval(targets, level)
        return self._intervals[asked]

    @property
    def number(self) -> Number | None:
        """Posterior of the number of records; None where nothing was counted."""
        return self.evidence.number

    @property
    def broad(self) -> float:
        """Posterior weight of the curves about the guess: that the stream has changed."""
        return float(self.weights[self.before.learned_count :].sum())

    def likelihood_moments(
        self, values: FloatArray, found: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the likelihood of a release: its posterior over its prior.

        Prior and posterior of a quantity are taken to be normal, so the likelihood is normal too.

        Args:
            values: The quantities of each curve, shape (i, k).
            found: The same as they are believed after the release, shape (k,).

        Returns:
            Means and variances, each shape (k,); a mean is at most MOST_GAIN times as far from that
            of the prior as the posterior's is. If the posterior's is more than SURPRISE deviations
            away, the prior was wrong: the posterior itself is returned.

        References:
            Minka 2001 (expectation propagation: the approximate likelihood of one observation).
        """
        before = self.before.weights
        mean = before @ values
        prior = before @ (values - mean) ** 2 + FLOOR
        here = self.weights @ values
        now = self.weights @ (values - here) ** 2 + FLOOR
        left = np.minimum(now, prior)
        variances = 1.0 / np.maximum(1.0 / left - 1.0 / prior, FLOOR)
        gain = np.minimum((variances + prior) / prior, MOST_GAIN)
        surprised = (found - mean) ** 2 > SURPRISE**2 * prior
        shown = np.where(surprised, found, mean + gain * (found - mean))
        return shown, np.where(surprised, now, variances)


def _through(shares: FloatArray, curve: FloatArray, known: FloatArray) -> FloatArray:
    """Warp a cdf so that it passes through the posterior mean at the cuts.

    Args:
        shares: Of the curve at some cells, shape (p,).
        curve: The same at the cuts, shape (c,).
        known: There, shape (c,).
    """
    order = np.argsort(curve, kind="stable")
    rising = np.concatenate(([0.0], np.maximum.accumulate(known[order].clip(0.0, 1.0)), [1.0]))
    return np.interp(shares, np.concatenate(([0.0], curve[order], [1.0])), rising)


FINER = "finer"
"""Name of the curves that are added to a belief."""

FIRST = 5
"""Releases from which on curves are known well enough to be moved by little."""

PARAMETERS = 2
"""Numbers of a move: as few cells do not show one."""

EXPLAINED = 0.7
"""Weight of learned curves from which on those about the guess say nothing of a batch."""

FINER_ROUNDS, NARROWER = 3, 0.4
"""Rounds of finer moves, and how much narrower each is than the one before."""

PATTERN = np.array([(i, j) for i in (-1.0, -0.5, 0.0, 0.5, 1.0) for j in (-1.0, 0.0, 1.0)])
"""Finer shifts and stretches, in steps of a round."""


def with_finer_moves(prior: Belief, evidence: Evidence) -> tuple[Belief, IntArray, FloatArray]:
    """Return a belief with finer moves about the curve that explains a release best.

    A batch that moved by what lies between two moves of a curve differs from both in a smooth way.
    A bridge is rough: it explains the difference by a large size, so that all between the cuts is
    in doubt. The likeliest curve hence gives half of its prior weight to curves about it, by the
    area that each stands for: they reach to the moves beside it, those of each round nearer to the
    likeliest of the round before. Weights that are learned are those of the whole.

    Args:
        prior: Before the release.
        evidence: The release.

    Returns:
        The belief, which curve of the prior each curve is a part of, and the cdf of each at the
        cells of the evidence, shape (i, c).
    """
    parents, predicted = np.arange(len(prior.weights)), prior.cdf(evidence.cells)
    if prior.releases < FIRST or len(evidence.cells) <= PARAMETERS:
        return prior, parents, predicted
    inverse = evidence.inverses(evidence.deviations(prior.marginal.cdf(evidence.cells)))
    learned = prior.weighed(evidence.y - predicted, inverse).sum(axis=1)[: prior.learned_count]
    if learned.sum() <= EXPLAINED:
        return prior, parents, predicted
    best = int(learned.argmax())
    *names, last = prior.groups
    ends = np.cumsum([len(prior.groups[name].moves) for name in names])
    group = int(ends.searchsorted(best, side="right"))
    curves = prior.groups[names[group]]
    move, added, shares = curves.moves[best - int(ends[group])], [], []
    step = np.array([_gap(SHIFTS, move[0]), _gap(STRETCHES, move[1])])
    for _ in range(FINER_ROUNDS):
        step = step * NARROWER
        tried = replace(curves, moves=move + step * PATTERN)
        shares.append(tried.cdf(evidence.cells))
        logs = _log_likelihoods(evidence.y - shares[-1], inverse)
        likely = np.exp(logs - logs.max()) @ prior.size_weights
        move = tried.moves[int(likely.argmax())]
        added.append(tried.moves)
    groups = {name: prior.groups[name] for name in names}
    groups |= {FINER: Curves(curves.of, np.concatenate(added)), last: prior.groups[last]}
    areas = np.repeat(NARROWER ** (2.0 * np.arange(FINER_ROUNDS)), len(PATTERN))
    weights, at = prior.weights.copy(), prior.learned_count
    weights[best] /= 2.0
    weights = np.insert(weights, at, weights[best] * areas / areas.sum())
    parents = np.insert(parents, at, np.full(len(areas), best))
    predicted = np.insert(predicted, at, np.concatenate(shares), axis=0)
    return replace(prior, groups=groups, weights=weights), parents, predicted


def _log_likelihoods(off: FloatArray, inverse: FloatArray) -> FloatArray:
    """Return the log likelihoods of curves and sizes up to a constant, shape (i, k).

    Args:
        off: Of what was seen from the curves, shape (i, c).
        inverse: Of the covariance of what is seen, by size, shape (k, c, c).
    """
    squares = np.einsum("kic,ic->ik", off @ inverse, off)
    return np.asarray(-0.5 * squares + 0.5 * np.linalg.slogdet(inverse)[1])


def _gap(values: FloatArray, value: float) -> float:
    """Return the longer way from one of some values to those beside it."""
    at = int(np.abs(values - value).argmin())
    return float(np.diff(values[max(at - 1, 0) : at + 2]).max())
