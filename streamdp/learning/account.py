"""Summaries of the mixture for display; nothing here affects a release.

All of it follows from learned states and public facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from streamdp.learning.mixture.belief import LEVELS
from streamdp.learning.mixture.distribution import Place
from streamdp.learning.mixture.mixture import Planned
from streamdp.learning.surrogate import laplace
from streamdp.types import FloatArray

LEAST_WEIGHT = 5e-4
"""A belief of less weight is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """One belief about a batch.

    Args:
        weight: Of it among all.
        places: Cells at which it puts some shares of the records.
    """

    weight: float
    places: FloatArray


def held(planned: Planned, shares: FloatArray) -> dict[str, Held]:
    """Return the beliefs about a batch by name, the heaviest first.

    Args:
        planned: Basis of the release.
        shares: Of the records, increasing, shape (s,).
    """
    groups = planned.memory.curves(planned.around)
    ends = np.cumsum([len(each.moves) for each in groups.values()])[:-1]
    found = {}
    for (name, curves), weights in zip(
        groups.items(), np.split(planned.belief.weights, ends), strict=True
    ):
        weight = float(weights.sum())
        if weight < LEAST_WEIGHT:
            continue
        at = np.unique(curves.places(LEVELS))
        places = np.interp(shares, weights @ curves.shares(at) / weight, at)
        found[name] = Held(weight, places)
    return dict(sorted(found.items(), key=lambda each: -each[1].weight))


def middles(planned: Planned, inputs: FloatArray) -> Mapping[str, Place]:
    """Return where beliefs would put a batch of other public numbers, by name.

    Args:
        planned: Basis of the release.
        inputs: Public numbers, a one first, shape (d,).
    """
    around = replace(planned.around, inputs=inputs)
    return {name: each.of.lies() for name, each in planned.memory.curves(around).items()}


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
