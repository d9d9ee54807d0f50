"""Fit a distribution to noisy counts without leaving a prior further than they ask for.

min over A of KL(A‖F)/φ + Σ_i |M_i A - y_i|²/(2σ²), masses and not shares, so totals are fitted
too. The dual is A = F·exp(φ·Σ_i λ_i), λ_i = (y_i - M_i A)/σ²; here A = F·exp(Σ_i φ_i·λ_i), for the
prior may be further from large cells than from small ones. For one item and the others fixed the
cells part, and each has a closed form; items take turns until nothing moves. That is
multiplicative weights run to its fixed point. Post-processing: it sees no record.

References:
    Hardt, Ligett & McSherry 2012; McKenna, Sheldon & Miklau 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import wrightomega

from streamdp.kinds.workload.fitting.distribution import Distribution
from streamdp.kinds.workload.fitting.marginals import Workload
from streamdp.mechanisms.noise import Noise
from streamdp.types import FloatArray

MOST_SWEEPS = 40
STILL = 1e-3
"""A sweep that moves a smaller share of the mass is the last."""

_LEAST_MASS = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """Noisy counts of an item. Public.

    Args:
        place: Of the item in the workload.
        values: Its cells' counts with noise.
        variance: Of the noise of a cell, as fits are told it.
        noise: Of a cell; None where values are foretold, not drawn.
    """

    place: int
    values: FloatArray
    variance: float
    noise: Noise | None = None


def refit(
    workload: Workload,
    prior: Distribution,
    measurements: Sequence[Measurement],
    pliancies: Sequence[float],
) -> dict[int, FloatArray]:
    """Tilt the prior in place, and return what was added to the potentials of each item.

    Args:
        workload: Domain and items.
        prior: F; becomes A.
        measurements: y, of this batch; an item may be measured twice.
        pliancies: φ of each: variance of a cell's count that the prior leaves open, over the count.
    """
    duals = [np.zeros(len(each.values)) for each in measurements]
    for _ in range(MOST_SWEEPS):
        moved = 0.0
        for number, (each, pliancy) in enumerate(zip(measurements, pliancies, strict=True)):
            masses = prior.masses(workload.items[each.place])
            change = _block(masses, duals[number], each, pliancy)
            duals[number] += change / pliancy
            prior.tilt(each.place, change)
            shift = np.abs(masses * np.expm1(change)).sum()
            moved = max(moved, float(shift / max(masses.sum(), 1.0)))
        if moved < STILL or len(measurements) == 1:
            break
    tilts: dict[int, FloatArray] = {}
    for each, dual, pliancy in zip(measurements, duals, pliancies, strict=True):
        tilts[each.place] = tilts.get(each.place, 0.0) + pliancy * dual
    return tilts


def _block(
    masses: FloatArray, dual: FloatArray, measured: Measurement, pliancy: float
) -> FloatArray:
    """z with σ²·(λ + z/φ) = y - a·e^z in each cell.

    With w = (a/b)·e^z, b = σ²/φ and c = y - σ²·λ this is w + ln w = c/b + ln(a/b), Wright's omega.
    """
    slope = measured.variance / pliancy
    scaled = (measured.values - measured.variance * dual) / slope
    log_mass = np.log(np.maximum(masses, _LEAST_MASS) / slope)
    return np.asarray(scaled - wrightomega(scaled + log_mass))
