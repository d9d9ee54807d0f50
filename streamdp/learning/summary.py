"""Summaries of the mixture for display; nothing here affects a release.

All of it follows from learned states and public facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from streamdp.learning.mixture.belief import LEVELS
from streamdp.learning.mixture.distribution import LocationScale
from streamdp.learning.mixture.mixture import PlanBasis
from streamdp.learning.online_gradient.descent import laplace
from streamdp.types import FloatArray

LEAST_WEIGHT = 5e-4
"""A belief of less weight is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """One belief about a batch.

    Args:
        weight: Of it among all.
        quantiles: Cells at which it puts some shares of the records.
    """

    weight: float
    quantiles: FloatArray


def components(basis: PlanBasis, levels: FloatArray) -> dict[str, Component]:
    """Return the beliefs about a batch by name, the heaviest first.

    Args:
        basis: Basis of the release.
        levels: Of the records, increasing, shape (s,).
    """
    groups = basis.memory.curves(basis.facts)
    ends = np.cumsum([len(each.moves) for each in groups.values()])[:-1]
    found = {}
    for (name, curves), weights in zip(
        groups.items(), np.split(basis.belief.weights, ends), strict=True
    ):
        weight = float(weights.sum())
        if weight < LEAST_WEIGHT:
            continue
        at = np.unique(curves.quantiles(LEVELS))
        places = np.interp(levels, weights @ curves.cdf(at) / weight, at)
        found[name] = Component(weight, places)
    return dict(sorted(found.items(), key=lambda each: -each[1].weight))


def middles(basis: PlanBasis, inputs: FloatArray) -> Mapping[str, LocationScale]:
    """Return where beliefs would put a batch of other public numbers, by name.

    Args:
        basis: Basis of the release.
        inputs: Public numbers, a one first, shape (d,).
    """
    facts = replace(basis.facts, inputs=inputs)
    return {name: each.of.location_scale() for name, each in basis.memory.curves(facts).items()}


def best_fixed(
    inputs: FloatArray, lower: FloatArray, upper: FloatArray, narrowest: float
) -> FloatArray:
    """Return the losses of the best fixed W and φ in hindsight, shape (t,).

    The surrogate is convex in both, so the minimum that is found is the least.

    Args:
        inputs: Public numbers of each release, a one first, shape (t, d).
        lower: Of the interval of one quantile in each release, shape (t,).
        upper: The same.
        narrowest: Least scale of the prior, in the unit of the intervals.
    """
    middle = (lower + upper) / 2.0
    centre = float(np.median(middle))
    unit = max(float(np.abs(middle - centre).mean()), narrowest)
    low, high = (lower - centre) / unit, (upper - centre) / unit

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        phi = np.full(len(low), parameters[-1])
        found = laplace(inputs @ parameters[:-1], phi, low, high)
        return float(found.value.sum()), np.append(found.by_theta @ inputs, found.by_phi.sum())

    start = np.append(np.zeros(inputs.shape[1]), 1.0)
    bounds = [(-1e6, 1e6)] * inputs.shape[1] + [(1e-3, unit / narrowest)]
    best = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return laplace(inputs @ best[:-1], np.full(len(low), best[-1]), low, high).value
