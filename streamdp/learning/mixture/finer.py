"""Finer moves about the curve that explains a release best.

A batch that moved by what lies between two moves of a curve differs from both in a smooth way. A
bridge is rough: it explains the difference by a large size, so that all between the cuts is in
doubt. The likeliest curve hence gives half of its prior weight to curves about it, by the area
that each stands for: they reach to the moves beside it, those of each round nearer to the
likeliest of the round before. Weights that are learned are those of the whole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from streamdp.learning.mixture.curves import SHIFTS, STRETCHES, Curves
from streamdp.types import FloatArray, IntArray

if TYPE_CHECKING:
    from streamdp.learning.mixture.belief import Belief
    from streamdp.learning.mixture.evidence import Evidence

NAME = "finer"
"""Name of the curves that are added."""

FIRST = 5
"""Releases from which on curves are known well enough to be moved by little."""

PARAMETERS = 2
"""Numbers of a move: as few cells do not show one."""

EXPLAINED = 0.7
"""Weight of learned curves from which on those about the guess say nothing of a batch."""

ROUNDS, NARROWER = 3, 0.4
"""Rounds of finer moves, and how much narrower each is than the one before."""

PATTERN = np.array([(i, j) for i in (-1.0, -0.5, 0.0, 0.5, 1.0) for j in (-1.0, 0.0, 1.0)])
"""Finer shifts and stretches, in steps of a round."""


def with_finer_moves(prior: Belief, evidence: Evidence) -> tuple[Belief, IntArray, FloatArray]:
    """Return a belief with finer curves about the likeliest.

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
    for _ in range(ROUNDS):
        step = step * NARROWER
        tried = replace(curves, moves=move + step * PATTERN)
        shares.append(tried.cdf(evidence.cells))
        likely = _likelihoods(prior, evidence.y - shares[-1], inverse)
        move = tried.moves[int(likely.argmax())]
        added.append(tried.moves)
    groups = {name: prior.groups[name] for name in names}
    groups |= {NAME: Curves(curves.of, np.concatenate(added)), last: prior.groups[last]}
    areas = np.repeat(NARROWER ** (2.0 * np.arange(ROUNDS)), len(PATTERN))
    weights, at = prior.weights.copy(), prior.learned_count
    weights[best] /= 2.0
    weights = np.insert(weights, at, weights[best] * areas / areas.sum())
    parents = np.insert(parents, at, np.full(len(areas), best))
    predicted = np.insert(predicted, at, np.concatenate(shares), axis=0)
    return replace(prior, groups=groups, weights=weights), parents, predicted


def _likelihoods(prior: Belief, off: FloatArray, inverse: FloatArray) -> FloatArray:
    """Return the likelihoods of curves, over all sizes, up to a common factor; shape (i,)."""
    logs = -0.5 * ((off @ inverse) * off).sum(axis=2)
    logs = logs.T + 0.5 * np.linalg.slogdet(inverse)[1] + np.log(prior.size_weights)
    return np.asarray(np.exp(logs - logs.max()).sum(axis=1))


def _gap(values: FloatArray, value: float) -> float:
    """Return the longer way from one of some values to those beside it."""
    at = int(np.abs(values - value).argmin())
    return float(np.diff(values[max(at - 1, 0) : at + 2]).max())
