"""How filters learn from one release: levels by gain, deviations by expectation maximisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.learning import filters as rules
from streamdp.learning import spacing
from streamdp.learning.belief import TINY, Belief
from streamdp.learning.filters import WIDTHS, Filters
from streamdp.learning.weighted import weighted_quantiles
from streamdp.types import FloatArray


@dataclass(frozen=True, slots=True)
class Posterior:
    """What each expert believes about one batch after its release.

    Args:
        weights: Of experts and their widths, shape (k, g).
        means: Shape (k, m).
        covariances: Shape (k, m, m).
        within: Weights of the widths of each expert, shape (k, g).
        information: Share of a forecast's variance that the release removed, in [0, 1], (k, g).
        each: Means before the widths were merged, shape (k, g, m).
        spreads: Covariances before, shape (k, g, m, m).
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    within: FloatArray
    information: FloatArray
    each: FloatArray
    spreads: FloatArray

    def shares(self) -> FloatArray:
        """Weight of each expert, shape (k,)."""
        return np.asarray(self.weights.sum(axis=1))

    def deviation(self) -> FloatArray:
        """Weighted median over experts of each quantile's standard deviation, shape (m,)."""
        deviations = np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2))
        return weighted_quantiles(deviations, self.shares(), 0.5)

    def point(self) -> FloatArray:
        """Weighted median over experts of each quantile, sorted, shape (m,)."""
        return np.sort(weighted_quantiles(self.means, self.shares(), 0.5))


def posterior(before: Belief, belief: Belief) -> Posterior:
    """Merge the widths of each expert by their first two moments.

    The information is merged by weight: in a ratio of moments the widest forecast, which learns
    from every release, would speak for those that learnt nothing.
    """
    size, widths = belief.means.shape[1], len(WIDTHS)
    experts = len(belief.means) // widths
    weights = belief.weights().reshape(experts, widths)
    logs = belief.log_weights.reshape(experts, widths)
    within = np.exp(logs - logs.max(axis=1, keepdims=True))  # an expert's own weight may be nought
    within /= within.sum(axis=1, keepdims=True)
    each = belief.means.reshape(experts, widths, size)
    means = np.einsum("kg,kgm->km", within, each)
    apart = each - means[:, None]
    covariances = belief.covariances.reshape(experts, widths, size, size)
    spread = covariances + apart[..., :, None] * apart[..., None, :]
    left = np.diagonal(belief.covariances, axis1=1, axis2=2) / np.maximum(
        np.diagonal(before.covariances, axis1=1, axis2=2), TINY
    )
    removed = np.clip(1.0 - left.max(axis=1), 0.0, 1.0).reshape(experts, widths)
    merged = np.einsum("kg,kgij->kij", within, spread)
    return Posterior(weights, means, merged, within, removed, each, covariances)


def learned(
    filters: Filters,
    after: Posterior,
    point: FloatArray,
    features: FloatArray,
    targets: FloatArray,
    anchor: tuple[int, float],
    resolution: float,
) -> Filters:
    """The filters after one release.

    Args:
        filters: Before.
        after: What these filters believe after the release.
        point: What all believe, shape (m,): of a spacing of their own, filters that nobody trusts
            could run away, for deviations are bounded in units of it.
        features: Of the batch, a 1 first, shape (d,).
        targets: Quantiles, shape (m,).
        anchor: Index and value of the release's first draw, the one of least noise.
        resolution: Width of a cell.
    """
    log_gaps = _spacing(filters, point, resolution)
    coefficients, uncertainties, seen = _read(filters, after, features)
    uncertainties[:, 0, 0] += np.minimum(filters.drifts, 1.0)
    last = np.isinf(filters.drifts)
    coefficients[last] = 0.0
    coefficients[last, :, 0] = _anchored(log_gaps, anchor)
    uncertainties[last] = 0.0
    uncertainties[last, 0, 0] = 1.0
    density = spacing.densities(targets, log_gaps)
    deviations = _deviations(filters, seen, density, resolution)
    if filters.level_only:
        uncertainties *= _shrinkage(filters.deviations, deviations)[:, None, None]
    weights = _shared(after.weights)
    mixed = Filters(
        filters.releases + 1, weights, coefficients, uncertainties, deviations, log_gaps
    )
    return _recovered(mixed, after)


def _spacing(filters: Filters, point: FloatArray, resolution: float) -> FloatArray:
    if len(filters.log_gaps) == 1:
        return filters.log_gaps
    rate = max(1.0 / (filters.releases + 3), rules.SPACING_RATE)
    new = spacing.log_gaps(point, resolution)
    return np.asarray((1.0 - rate) * filters.log_gaps + rate * new)


def _anchored(log_gaps: FloatArray, anchor: tuple[int, float]) -> FloatArray:
    """The usual spacing, placed where the first draw fell."""
    if len(log_gaps) == 1:
        return np.array([anchor[1]])
    places = np.concatenate(([0.0], np.cumsum(spacing.gaps(log_gaps))))
    return np.asarray(places - places[anchor[0]] + anchor[1])


Reading = tuple[FloatArray, FloatArray, FloatArray]
"""Coefficients, their uncertainties, and what was seen of the deviations."""


def _read(filters: Filters, after: Posterior, features: FloatArray) -> Reading:
    """Coefficients are as uncertain at every width, the deviations are not."""
    carried, scales = filters.uncertainties @ features, filters.scales(features)
    moved = after.each - (filters.coefficients @ features)[:, None]
    shares = after.within / scales
    pulled = np.einsum("kg,kgm->km", shares, moved)
    known = (shares * after.information).sum(axis=1)
    own = WIDTHS**2 / scales
    squares = moved[..., :, None] * moved[..., None, :] + after.spreads
    left = (WIDTHS**2 * (1.0 - own))[..., None, None] * filters.deviations[:, None]
    each = (own**2)[..., None, None] * squares + left
    return (
        filters.coefficients + pulled[:, :, None] * carried[:, None, :],
        filters.uncertainties - known[:, None, None] * _square(carried),
        np.asarray(np.einsum("kg,kgij->kij", after.within, each)),
    )


def _square(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors[:, :, None] * vectors[:, None, :])


def _deviations(
    filters: Filters, seen: FloatArray, density: FloatArray, resolution: float
) -> FloatArray:
    """D moves towards what was seen, partly in the form of common moves of the same size."""
    size = len(density)
    own = np.maximum(np.diagonal(seen, axis1=1, axis2=2) * density**2, TINY)
    ranks = np.log(own).mean(axis=1)
    common = np.exp(ranks)[:, None, None] * spacing.common_moves(density)
    target = (1.0 - rules.TIED) * seen + rules.TIED * common
    target += np.eye(size) * (resolution / 4.0) ** 2
    rate = max(1.0 / (filters.releases + 4), rules.FORGET)
    new = (1.0 - rate) * filters.deviations + rate * target
    size_in_ranks = np.einsum("kii,i->k", new, density**2) / size
    bounded = np.minimum(1.0, rules.LARGEST_DEVIATION**2 / size_in_ranks)
    return np.asarray(new * bounded[:, None, None])


def _shrinkage(before: FloatArray, after: FloatArray) -> FloatArray:
    """By what each D has shrunk, shape (k,): levels known in units of it are known no better.

    Coefficients are: D shrinks as they explain what passed for deviation.
    """
    both = (np.diagonal(each, axis1=1, axis2=2) for each in (before, after))
    old, new = (np.log(variances).mean(axis=1) for variances in both)
    return np.asarray(np.exp(old - new))


def _shared(weights: FloatArray) -> FloatArray:
    """Fixed share: half of it to all, half to the widths of the same expert; logarithms."""
    to_all = weights.sum() / weights.size
    to_own = weights.sum(axis=1, keepdims=True) / weights.shape[1]
    mixed = (1.0 - rules.SHARE) * weights + rules.SHARE * (to_all + to_own) / 2.0
    return np.asarray(np.log(mixed))


def _recovered(filters: Filters, after: Posterior) -> Filters:
    """Failed experts copy the best; an expert best at an outer width moves its widths there."""
    weights, deviations = filters.log_weights, filters.deviations
    coefficients, uncertainties = filters.coefficients, filters.uncertainties
    best = int(after.shares().argmax())
    for expert, drift in enumerate(filters.drifts.tolist()):
        widest = int(after.weights[expert].argmax())
        if after.shares()[expert] < rules.FAILED and not np.isinf(drift):
            coefficients[expert] = coefficients[best]
            uncertainties[expert] = uncertainties[best]
            uncertainties[expert, 0, 0] += min(drift, 1.0)
            if np.isinf(filters.drifts[best]):
                uncertainties[expert] += np.eye(uncertainties.shape[1]) * rules.FIRST_UNCERTAINTY
            deviations[expert] = deviations[best]
            weights[expert] = np.log(rules.SHARE / weights.size)
        elif widest == 0:
            deviations[expert] *= (WIDTHS[0] / WIDTHS[1]) ** 2
            uncertainties[expert] *= (WIDTHS[1] / WIDTHS[0]) ** 2
            weights[expert] = np.append(weights[expert, 0] - 2.0, weights[expert, :-1])
        elif widest == len(WIDTHS) - 1:
            deviations[expert] *= (WIDTHS[-1] / WIDTHS[-2]) ** 2
            uncertainties[expert] *= (WIDTHS[-2] / WIDTHS[-1]) ** 2
            weights[expert] = np.append(weights[expert, 1:], weights[expert, -1] - 2.0)
    return filters
