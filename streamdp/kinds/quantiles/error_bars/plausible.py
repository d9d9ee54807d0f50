"""Plausible batches of a few parameters, weighted by how likely they make what was released.

A batch has a median, a spread and two tails: quantile function a + b·z(p), z of Tukey's family
with a parameter for either tail, from bounded to heavy. Under a batch, each draw of the tree has
the law P(o) = μ(o)·e^(-c·n·|F(o) - target|)/Z, with the actual prior μ and its normaliser Z over
the region, so what the prior pulled is not mistaken for what the data say. Of trees of joint nodes
the root has its normaliser (`normaliser`); that of nodes below it is taken as constant.

What is believed before: the priors at the quantiles count as three opinions, however many quantiles
there are, since place, spread and skew are what quantiles tell together; and a spread within a
factor of three of the configured scale, or so. A joint draw may follow the guess as a whole, so of
it they count as one, and the spread is within a factor of four.

The four parameters are sampled adaptively, by importance.

References:
    Ramberg & Schmeiser 1974 (the family).
    Cappé et al. 2004 (population Monte Carlo); Veach & Guibas 1995 (weights by the mixture).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from streamdp.kinds.quantiles.error_bars.normaliser import RootNormaliser
from streamdp.learning.mixture.distribution import weighted_quantiles
from streamdp.mechanisms.quantile_tree.planning.rank_law import rank_samples, uniforms
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import band
from streamdp.types import FloatArray, IntArray, Prior

_ENOUGH = 30
"""Batches that share the weights, in effect, when the next are drawn about them."""


@dataclass(frozen=True, slots=True)
class Law:
    """Student's t with four degrees of freedom.

    Args:
        mean: Shape (4,).
        root: Lower triangular, times its transpose the covariance.
        inverse: Of the root.
    """

    mean: FloatArray
    root: FloatArray
    inverse: FloatArray

    @staticmethod
    def of(mean: FloatArray, covariance: FloatArray) -> Law:
        """The law of a mean and a covariance."""
        root = np.asarray(np.linalg.cholesky(covariance))
        return Law(mean, root, np.asarray(np.linalg.inv(root)))


def _law_of(batches: FloatArray, weights: FloatArray, least: FloatArray) -> Law:
    """Mean and somewhat more than the covariance of weighted batches."""
    mean = weights @ batches
    off = batches - mean
    return Law.of(mean, 1.4 * (weights[:, None] * off).T @ off + np.diag(least**2))


def _tempered(logs: FloatArray) -> FloatArray:
    """Temper the weights so far that the effective sample size is at least `_ENOUGH`."""
    low, high = 0.0, 1.0
    off = logs - logs.max()
    for power in (1.0, *([None] * 10)):
        middle = power or (low + high) / 2.0
        weights = np.exp(middle * off)
        weights /= weights.sum()
        enough = (weights**2).sum() * _ENOUGH < 1.0
        if enough and power:
            break
        low, high = (middle, high) if enough else (low, middle)
    return np.asarray(weights)


def _draws(law: Law, count: int, number: int) -> FloatArray:
    """Batches of a law, the same ones for a number."""
    chance = uniforms(f"plausible {number}", 6, count)
    radius = np.sqrt(-2.0 * np.log(chance[:2]))
    angle = 2.0 * np.pi * chance[2:4]
    normal = np.concatenate((radius * np.cos(angle), radius * np.sin(angle)))
    heavy = np.sqrt(-0.5 * np.log(chance[4] * chance[5]))
    return np.asarray(law.mean + (law.root @ (normal / heavy)).T)


def _log_mixture(at: FloatArray, laws: list[Law], counts: list[int]) -> FloatArray:
    """ln of the density of draws from several laws, so many from each, times their number."""
    found = []
    for law, count in zip(laws, counts, strict=True):
        squared = (((at - law.mean) @ law.inverse.T) ** 2).sum(axis=1)
        density = -4.0 * np.log1p(squared / 4.0) + np.log(np.diag(law.inverse)).sum()
        found.append(density + np.log(count))
    return np.asarray(np.logaddexp.reduce(found, axis=0))


def _log_weights(log_targets: FloatArray, log_mixed: FloatArray) -> FloatArray:
    """ln of weights of draws from several laws, by the mixture of all."""
    found = log_targets - log_mixed
    return np.asarray(found - np.logaddexp.reduce(found))


TAIL, TAIL_SPREAD = -0.05, 0.5
"""Mean and spread of a tail's parameter: 1 uniform, 0.14 about normal, below 0 heavy."""

OPINIONS, OPINIONS_JOINTLY = 3.0, 1.0
"""Priors of independent quantiles that those of one batch are worth: of independent draws, and of a
joint one, which may follow its shapes as a whole."""

SCALE_SPREAD, SCALE_SPREAD_JOINTLY = 1.1, 1.3
"""Standard deviation of ln of a batch's spread over the configured scale."""

FIRST, LATER, ROUNDS = 300, 250, 3
"""Batches tried at first anywhere and about fits, in each later round, and the number of those."""

TIMES = (0.4, 2.7, 12.0)
"""Widths of batches that are tried anywhere, in those that the configuration believes: draws that
follow their prior do not show how wide a batch is."""

_PLACES, _SPREADS = np.linspace(-7.6, 7.6, 33), np.linspace(-5.0, 5.0, 17)
"""Places that are looked at, as arsinh of believed scales, and logarithms of spreads over these."""

_FAINT = -700.0
"""ln of the least mass of a stretch: none is impossible (`measure.FLOOR`)."""

_SHARES = 1.0 / (1.0 + np.exp(-np.linspace(-9.0, 9.0, 73)))
_MIDDLE = np.array([0.1587, 0.5, 0.8413])
_NEAR = np.array([0.01, 0.04, 0.12, 0.3])
_FAR = np.array([0.1, 0.3, 0.7, 1.5, 3.0, 6.0, 15.0, 50.0, 200.0])
_BEYOND = np.logspace(3.0, 9.0, 13)
"""Distances at which the prior alone goes on where the grid ends: were it even there, batches
outside the grid, in which every draw follows the prior, would have all of the weight."""


@dataclass(frozen=True, slots=True)
class Plausible:
    """Weighted batches.

    Args:
        quantiles: Of each batch, shape (k, m).
        weights: Shape (k,), sum one.
    """

    quantiles: FloatArray
    weights: FloatArray

    def edges(self, shares: FloatArray) -> FloatArray:
        """Values below which quantiles lie in so large a share of the batches, (len(shares), m)."""
        return weighted_quantiles(self.quantiles, self.weights, shares)


def plausible(
    tree: QuantileTree, prior: JointPrior, rows: int, values: FloatArray, scale: float
) -> Plausible:
    """Batches under which the released values are likely.

    Tried first are batches in which the values have ranks that they may have, and batches anywhere.
    """
    task = _Task(tree, prior, rows, values, scale)
    spread = max(float(np.ptp(values)) / 2.0, scale / 30.0, float(tree.grid.resolution))
    centre = np.array([float(np.median(values)), np.log(np.sqrt(spread * scale)), TAIL, TAIL])
    widths = np.array([2.0 * max(spread, scale), 1.5, 0.5, 0.5])
    ranks = rank_samples(tree, rows, FIRST)
    fits = _fits(values, ranks.clip(0.5 / rows, 1.0 - 0.5 / rows), scale)
    even = np.full(len(fits), 1.0 / len(fits))
    laws = [Law.of(centre, np.diag(widths**2)), _law_of(fits, even, widths / 50.0)]
    counts = [FIRST, FIRST]
    if tree.node == "joint" and len(values) > 1:
        laws += [_anywhere(float(np.median(values)), scale, times) for times in TIMES]
        counts += [FIRST // 2] * len(TIMES)
    each = zip(laws, counts, strict=True)
    drawn = np.concatenate([_draws(law, count, number) for number, (law, count) in enumerate(each)])
    targets, mixed = task.log_posterior(drawn), _log_mixture(drawn, laws, counts)
    for number in range(len(laws), len(laws) + ROUNDS):
        law = _law_of(drawn, _tempered(_log_weights(targets, mixed)), widths / 150.0)
        more = _draws(law, LATER, number)
        laws.append(law)
        counts.append(LATER)
        mixed = np.logaddexp(mixed, _log_mixture(drawn, [law], [LATER]))
        mixed = np.concatenate((mixed, _log_mixture(more, laws, counts)))
        drawn = np.concatenate((drawn, more))
        targets = np.concatenate((targets, task.log_posterior(more)))
    return Plausible(task.quantiles(drawn), np.exp(_log_weights(targets, mixed)))


def _anywhere(place: float, scale: float, times: float) -> Law:
    """Return the law of batches about so many times as wide as the configuration believes."""
    centre = np.array([place, np.log(scale * times), TAIL, TAIL])
    return Law.of(centre, np.diag(np.array([2.0 * scale * max(times, 1.0), 1.0, 0.5, 0.5]) ** 2))


def _fits(values: FloatArray, ranks: FloatArray, scale: float) -> FloatArray:
    """Batches of any tails in which the values have about such ranks, shape (k, 4)."""
    chance = uniforms("fits", 4, len(ranks))
    normal = np.sqrt(-2.0 * np.log(chance[:2])) * np.cos(2.0 * np.pi * chance[2:])
    tails = TAIL + TAIL_SPREAD * normal.T
    standard = _standard(ranks, tails)
    if len(values) > 1:
        wide = np.maximum(values.std(), scale / 1000.0)
        spreads = np.log(wide / np.maximum(standard.std(axis=1), 1e-3))
    else:
        spreads = np.log(scale) + SCALE_SPREAD * normal[0]
    places = values.mean() - np.exp(spreads) * standard.mean(axis=1)
    return np.column_stack((places, spreads, tails))


class _Task:
    """Released values, and the likelihood of a batch given them."""

    def __init__(
        self, tree: QuantileTree, prior: JointPrior, rows: int, values: FloatArray, scale: float
    ) -> None:
        self._tree, self._scale = tree, scale
        joint = tree.node == "joint" and len(values) > 1
        self._totals = _totals_of(tree, prior, rows, scale) if joint else None
        self._targets = np.array([float(quantile) for quantile in tree.quantiles])
        levels = tree.levels()
        self._draws = [
            (
                node,
                np.array([float(each) for each in node.quantiles]),
                float(levels[node.level].sharpness(node.quantiles)) * rows,
            )
            for node in tree.nodes()
        ]
        grid, half = tree.grid, float(tree.grid.resolution) / 2.0
        low, high = grid.value(grid.lower) - half, grid.value(grid.upper) + half
        steps = np.concatenate((_NEAR, 1.0 - _NEAR[::-1]))
        inner = (values[:-1, None] + np.diff(values)[:, None] * steps).ravel()
        reach = max(scale, float(np.ptp(values)))
        outer = np.concatenate((values[0] - reach * _FAR, values[-1] + reach * _FAR))
        near = (values[[0, -1], None] + scale * np.array([[-0.03, -0.01], [0.01, 0.03]])).ravel()
        knots = np.concatenate((values, inner, outer, near, [low, high]))
        looked_at = values if tree.node == "joint" else knots  # joint draws ask for no mass between
        self._knots = np.unique(looked_at.clip(low, high))
        self._place = self._knots.searchsorted(values.clip(low, high))
        logs = _log_masses(prior, self._knots)
        self._masses = [np.exp(logs[each]) for each in prior.robust]
        beyond = reach * np.concatenate((-_BEYOND[::-1], _BEYOND))
        anywhere = np.unique(np.concatenate((knots, float(np.median(values)) + beyond)))
        logs, widths = _log_masses(prior, anywhere), np.diff(anywhere)
        self._densities = [logs[each] - np.log(widths) for each in prior.robust]
        self._middles = (anywhere[:-1] + anywhere[1:]) / 2.0

    def quantiles(self, batches: FloatArray) -> FloatArray:
        """Return the batches' quantiles at the targets, shape (k, m)."""
        return _read(batches, self._targets)

    def _ranks(self, batches: FloatArray) -> FloatArray:
        """F at the knots, shape (k, knots)."""
        return _levels(batches, self._knots)

    def log_posterior(self, batches: FloatArray) -> FloatArray:
        """ln of what is believed and of the likelihood."""
        alone = self._totals is None
        spread = SCALE_SPREAD if alone else SCALE_SPREAD_JOINTLY
        opinions = OPINIONS if alone else OPINIONS_JOINTLY
        found = -0.5 * ((batches[:, 1] - np.log(self._scale)) / spread) ** 2
        found -= 0.5 * (((batches[:, 2:] - TAIL) / TAIL_SPREAD) ** 2).sum(axis=1)
        places, share = self.quantiles(batches), min(1.0, opinions / len(self._targets))
        for j, density in enumerate(self._densities):
            found = found + share * np.interp(places[:, j], self._middles, density)
        found = found + self._log_likelihood(self._ranks(batches))
        return np.asarray(found if self._totals is None else found - self._totals.at(batches))

    def _log_likelihood(self, ranks: FloatArray) -> FloatArray:
        """ln P(released | batch) for ranks of the knots, shape (k, knots)."""
        found = np.zeros(len(ranks))
        last = len(self._place)
        place = {-1: 0, last: len(self._knots) - 1} | dict(enumerate(self._place.tolist()))
        seen = {j: ranks[:, place[j]] for j in range(last)}
        seen |= {-1: np.zeros(len(ranks)), last: np.ones(len(ranks))}
        for node, quantiles, strength in self._draws:
            low, high = seen[node.left], seen[node.right]
            if self._tree.node == "joint":
                path = np.stack([low, *(seen[j] for j in node.targets), high])
                wanted = np.diff([0.0, *quantiles, 1.0])[:, None] * (high - low)
                found -= strength * np.abs(np.diff(path, axis=0) - wanted).sum(axis=0)
                continue
            region = slice(place[node.left], place[node.right] + 1)
            for target, quantile in zip(node.targets, quantiles, strict=True):
                wanted = low + quantile * (high - low)
                found -= strength * np.abs(seen[target] - wanted)
                kept = ranks[:, region] - wanted[:, None]
                np.abs(kept, out=kept)
                kept *= -strength
                np.exp(kept, out=kept)
                masses = self._masses[target][region.start : region.stop - 1]
                total = ((kept[:, 1:] + kept[:, :-1]) / 2.0) @ masses
                found -= np.log(np.maximum(total, 1e-300))
        return found


def _read(batches: FloatArray, shares: FloatArray) -> FloatArray:
    """Quantiles of batches at shares, shape (k, shares)."""
    standard = _standard(shares, batches[:, 2:])
    return np.asarray(batches[:, :1] + np.exp(batches[:, 1:2].clip(-300, 300)) * standard)


def _levels(batches: FloatArray, values: FloatArray) -> FloatArray:
    """F of batches at some values, shape (k, values)."""
    found = np.empty((len(batches), len(values)))
    for row, curve in enumerate(_read(batches, _SHARES)):
        found[row] = np.interp(values, curve, _SHARES, 0.0, 1.0)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Totals:
    """ln Z of the root's draw over places and spreads of batches whose tails are usual.

    Args:
        centre: Of the places, in the unit of the column.
        scale: Their unit near it.
        table: Shape (`_PLACES`, `_SPREADS`).
    """

    centre: float
    scale: float
    table: FloatArray

    def at(self, batches: FloatArray) -> FloatArray:
        """Return ln Z of batches, shape (k,), between those of the table."""
        place = np.arcsinh((batches[:, 0] - self.centre) / self.scale)
        spread = batches[:, 1] - math.log(self.scale)
        row, right = _between(place, _PLACES)
        column, up = _between(spread, _SPREADS)
        left = (1.0 - up) * self.table[row, column] + up * self.table[row, column + 1]
        other = (1.0 - up) * self.table[row + 1, column] + up * self.table[row + 1, column + 1]
        return np.asarray((1.0 - right) * left + right * other)


def _between(values: FloatArray, knots: FloatArray) -> tuple[IntArray, FloatArray]:
    """The knot left of each value, and how far on it lies to the next."""
    at = (knots.searchsorted(values, side="right") - 1).clip(0, len(knots) - 2)
    return at, ((values - knots[at]) / (knots[at + 1] - knots[at])).clip(0.0, 1.0)


@functools.lru_cache(maxsize=16)
def _totals_of(tree: QuantileTree, prior: JointPrior, rows: int, scale: float) -> _Totals:
    """ln Z over a table of batches: found once for a prior, which first releases have in common."""
    (centre,) = band(prior.robust[len(prior.robust) // 2], tree.grid, (0.5,)).tolist()
    places, spreads = (
        each.ravel()
        for each in np.meshgrid(
            centre + scale * np.sinh(_PLACES), math.log(scale) + _SPREADS, indexing="ij"
        )
    )
    batches = np.column_stack((places, spreads, np.full((len(places), 2), TAIL)))
    root = RootNormaliser.of(tree, prior, rows)
    found = root.log_totals(partial(_read, batches), _levels(batches, root.points()))
    return _Totals(centre, scale, found.reshape(len(_PLACES), len(_SPREADS)))


def _standard(shares: FloatArray, tails: FloatArray) -> FloatArray:
    """z at shares, which are those of all batches or of each, with median 0 and spread 1."""
    left, right = (tails[:, each, None].clip(-1.5, 2.0) for each in (0, 1))

    def raw(at: FloatArray) -> FloatArray:
        return _tail(1.0 - at, right) - _tail(at, left)

    middle = raw(_MIDDLE)
    return np.asarray((raw(shares) - middle[:, 1:2]) / (middle[:, 2:] - middle[:, :1]) * 2.0)


def _log_masses(prior: JointPrior, knots: FloatArray) -> dict[Prior, FloatArray]:
    """ln of the mass between knots, of each prior of a quantile alone."""
    between = knots[:-1], knots[1:]
    return {each: np.maximum(each.log_mass(*between), _FAINT) for each in set(prior.robust)}


def _tail(shares: FloatArray, tail: FloatArray) -> FloatArray:
    """(1 - p^t)/t, and about -ln p for t = 0."""
    steps = np.where(np.abs(tail) < 1e-6, 1e-6, tail)
    found = steps * np.log(shares)
    np.expm1(found, out=found)
    found /= -steps
    return np.asarray(found)
