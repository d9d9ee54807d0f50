"""How far batches are from what was foretold of them: error bars of answers, and what to measure.

The variance of a cell's count around its prior m is taken as m + ω·m² and a little, ω an item's:
chance, and days that differ. Each released measurement shows ω of its item and of those that it
contains: their squared distance from the prior, less the noise and chance. The more of it is noise,
the less it counts. Post-processing throughout.

Where no value repeats, how concentrated items are can be learned. The concentration of an item of m
listed cells with shares p, on the average q, is 1 + m·Σ(p - q)²: 1 if they are even, however many
records are not listed, and m if all records are in one of them. It stays when values change places.
A marginal of several axes is kept as its concentration over the product of those of its axes: 1 if
they are independent and all records are listed. Post-processing: it sees releases alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamdp.kinds.workload.fitting.distribution import Marginal, NoisyMarginal, Workload
from streamdp.types import FloatArray

FIRST_OMEGA = 0.2
"""ω around learned hypotheses, before anything was seen."""

FIRST_UNIFORM = 2.0
"""ω around the uniform distribution."""

SURPRISED = 0.5
"""Least ω around learned hypotheses after a release that none of them foretold."""

LEAST_OMEGA = 0.002
PACE = 0.25
"""Step by which an item's ω moves when it is measured without noise."""

TOLD = 0.05
"""ω below which noise is compared with this: else a small ω would never grow."""

RETURN = 0.03
"""Share of their distance to the mean by which other items' ω return each release."""

SMALL = 0.25
"""Variance of the count of a cell that is hardly expected to be there."""

AGEING = 0.1
"""ω of an item grows by this share for every release since it was measured, up to four times: what
to measure and intervals alike reckon with it."""

WIDTH = 2.3
"""Half width of a 95 % interval in standard deviations: the deviations are estimates themselves."""


UNIFORM_WIDTH = 2.5
"""Width about the uniform distribution, whose misses have heavier tails."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Dispersion of each item around the learned hypotheses, and around the uniform one.

    Args:
        omegas: Of the items.
        uniform: Of all items around the uniform distribution.
        ages: Releases since an item was measured, by itself or within a larger one.
    """

    omegas: tuple[float, ...]
    uniform: float
    ages: tuple[int, ...]

    @classmethod
    def first(cls, items: int) -> Spread:
        """Return the memory before the first release."""
        return cls((FIRST_OMEGA,) * items, FIRST_UNIFORM, (4,) * items)

    def after(
        self,
        workload: Workload,
        measured: Sequence[NoisyMarginal],
        priors: Sequence[FloatArray],
        uniform: bool,
    ) -> Spread:
        """Spread after a release.

        Args:
            workload: Its items.
            measured: What was measured.
            priors: What the leading hypothesis had foretold of each.
            uniform: Whether that was the uniform one.
        """
        omegas, cold = np.array(self.omegas), self.uniform
        for each, prior in zip(measured, priors, strict=True):
            if uniform:
                cold = _learned(cold, each.values, prior, each.variance)
                continue
            outer = workload.items[each.place]
            for place, inner in enumerate(workload.items):
                noise = noise_within(workload, each.place, place) * each.variance
                if np.isfinite(noise):
                    values, known = (_within_outer(outer, inner, x) for x in (each.values, prior))
                    omegas[place] = _learned(float(omegas[place]), values, known, noise)
        if uniform:
            omegas = np.maximum(omegas, SURPRISED)
        omegas += RETURN * (omegas.mean() - omegas)
        seen = {each.place for each in measured}
        ages = tuple(
            0 if place in seen or _within(workload, place, seen) else age + 1
            for place, age in enumerate(self.ages)
        )
        return Spread(tuple(float(each) for each in omegas), cold, ages)

    def variances(self, workload: Workload, place: int, masses: FloatArray) -> FloatArray:
        """Variances of the counts of an item about a learned prior, grown with age."""
        growth = min(1.0 + AGEING * self.ages[place], 4.0)
        return _variances(self.omegas[place] * growth, masses)

    def half_widths(
        self,
        workload: Workload,
        place: int,
        masses: FloatArray,
        measured: Sequence[NoisyMarginal],
        uniform: bool,
    ) -> FloatArray:
        """Half widths of 95 % intervals around the published counts of an item."""
        if uniform:
            variances = _variances(self.uniform, masses)
        else:
            variances = self.variances(workload, place, masses)
        for each in measured:
            noise = noise_within(workload, each.place, place) * each.variance
            if np.isfinite(noise):
                variances = variances * noise / (variances + noise)
        return np.asarray((UNIFORM_WIDTH if uniform else WIDTH) * np.sqrt(variances))


def _learned(omega: float, values: FloatArray, prior: FloatArray, variance: float) -> float:
    """Return an item's ω after its noisy counts; the noise of a squared one has variance 5σ⁴."""
    size = max(float((prior**2).sum()), 1.0)
    shown = float(((values - prior) ** 2 - variance - prior).sum()) / size
    noise = math.sqrt(_FOURTH * len(values)) * variance / size
    told = max(omega, TOLD) ** 2
    return max(omega + PACE * told / (told + noise**2) * (shown - omega), LEAST_OMEGA)


def _variances(omega: float, masses: FloatArray) -> FloatArray:
    return np.asarray(SMALL + masses + omega * masses**2)


def schedule(
    workload: Workload,
    spread: Spread,
    masses: Sequence[FloatArray],
    taken: Sequence[NoisyMarginal],
    variance: float,
    rounds: int,
) -> tuple[int, ...]:
    """The items whose measurement is expected to lower the error most, from releases alone.

    Greedy: an item gains Σ_cells √V - √(V·σ²/(V + σ²)) for itself and for all that it contains.

    Args:
        workload: Its items.
        spread: Of past releases.
        masses: What is foretold of each item.
        taken: What is measured already; items are chosen once while others are left.
        variance: Of the noise of a cell.
        rounds: How many to choose.
    """
    variances = [spread.variances(workload, place, mass) for place, mass in enumerate(masses)]
    used = [0] * len(workload.items)
    for each in taken:
        used[each.place] += 1
        _measured(workload, each.place, variances, each.variance)
    chosen: list[int] = []
    for _ in range(rounds):
        gains = [
            -np.inf if used[place] > min(used) else _gain(workload, place, variances, variance)
            for place in range(len(workload.items))
        ]
        best = int(np.argmax(gains))
        used[best] += 1
        chosen.append(best)
        _measured(workload, best, variances, variance)
    return tuple(chosen)


def _measured(workload: Workload, place: int, variances: list[FloatArray], variance: float) -> None:
    """Lower the variances of all items that a measured one contains."""
    for inner, before in enumerate(variances):
        noise = noise_within(workload, place, inner) * variance
        if np.isfinite(noise):
            variances[inner] = before * noise / (before + noise)


def noise_within(workload: Workload, outer: int, inner: int) -> float:
    """Noise of a cell of the inner item if the outer is measured, over that of the outer's cells.

    1 for the item itself; cells of a smaller marginal are sums of those of a larger; infinite if
    the inner is not contained.
    """
    if outer == inner:
        return 1.0
    one, other = workload.items[outer], workload.items[inner]
    if one.labels is not None or not set(other.axes) <= set(one.axes):
        return float("inf")
    return one.size / other.size


def _gain(
    workload: Workload, place: int, variances: Sequence[FloatArray], variance: float
) -> float:
    gain = 0.0
    for inner, before in enumerate(variances):
        noise = noise_within(workload, place, inner) * variance
        if np.isfinite(noise):
            gain += float((np.sqrt(before) - np.sqrt(before * noise / (before + noise))).sum())
    return gain


def _within(workload: Workload, place: int, outer: set[int]) -> bool:
    return any(np.isfinite(noise_within(workload, each, place)) for each in outer)


DECAY = 0.99
"""Factor on the weight of a release for each that follows."""

FIRST = 1.3
"""Concentration of an item that was never measured, with the weight of one exact release."""

DOUBT = 0.3
"""Deviation of a concentration from release to release, over it."""

_FOURTH = 5.0
"""Variance of a squared Laplace variable, over its squared variance."""


@dataclass(frozen=True, slots=True)
class Concentration:
    """Concentrations of the items, averaged over releases.

    Args:
        sums: Of those that were seen, each by its weight.
        weights: Of what was seen; a release without noise has 1.
    """

    sums: tuple[float, ...]
    weights: tuple[float, ...]

    @classmethod
    def first(cls, items: int) -> Concentration:
        """Return the sums before the first release."""
        return cls((0.0,) * items, (0.0,) * items)

    @property
    def known(self) -> bool:
        """Whether anything was measured."""
        return any(self.weights)

    def after(
        self, workload: Workload, measured: Sequence[NoisyMarginal], total: float
    ) -> Concentration:
        """Averages after a release.

        Args:
            workload: Its items.
            measured: What was measured.
            total: Records of the batch, as they are known from releases.
        """
        sums, weights = DECAY * np.array(self.sums), DECAY * np.array(self.weights)
        for each in measured:
            outer = workload.items[each.place]
            for place, item in enumerate(workload.items):
                noise = noise_within(workload, each.place, place) * each.variance
                if math.isinf(noise):
                    continue
                seen, weight = _seen(
                    workload, item, _within_outer(outer, item, each.values), noise, total
                )
                sums[place] += weight * seen
                weights[place] += weight
        return Concentration(tuple(map(float, sums)), tuple(map(float, weights)))

    def of_items(self, workload: Workload) -> FloatArray:
        """Expected concentration of each item."""
        found = (np.array(self.sums) + FIRST) / (np.array(self.weights) + 1.0)
        found = np.maximum(found, 1.0)
        alone = single_axes(workload)
        for place, item in enumerate(workload.items):
            if _is_product(workload, item):
                found[place] *= math.prod(found[alone[axis]] for axis in item.axes)
        return np.asarray(found)


def single_axes(workload: Workload) -> dict[int, int]:
    """Places of the items that are an axis by itself, by the axis."""
    return {
        item.axes[0]: place
        for place, item in enumerate(workload.items)
        if len(item.axes) == 1 and item.labels is None
    }


def _is_product(workload: Workload, item: Marginal) -> bool:
    """Whether an item is a marginal of several axes that are items too."""
    several = len(item.axes) > 1 and item.labels is None
    return several and set(item.axes) <= set(single_axes(workload))


def _within_outer(outer: Marginal, inner: Marginal, values: FloatArray) -> FloatArray:
    """Counts of an item by those of one that contains it."""
    if outer is inner:
        return values
    others = tuple(place for place, axis in enumerate(outer.axes) if axis not in inner.axes)
    return np.asarray(inner.masses(values.reshape(outer.shape).sum(axis=others)))


def _seen(
    workload: Workload, item: Marginal, values: FloatArray, noise: float, total: float
) -> tuple[float, float]:
    """Concentration of an item by some noisy counts, and its weight."""
    shape = (item.size,) if item.labels is not None else item.shape
    listed, table = workload.listed(item), values.reshape(shape)
    inside = table[tuple(map(slice, listed))]
    seen, variance = _concentration(inside.reshape(-1), noise, total)
    if _is_product(workload, item):
        alone = 1.0
        for axis, cells in enumerate(listed):
            others = tuple(other for other in range(len(shape)) if other != axis)
            sums = table.sum(axis=others)[:cells]
            found, _ = _concentration(sums, noise * len(values) / shape[axis], total)
            alone *= max(found, 1.0)
        seen, variance = seen / alone, variance / alone**2
    return seen, DOUBT**2 / (DOUBT**2 + variance / max(seen, 1.0) ** 2)


def _concentration(values: FloatArray, noise: float, total: float) -> tuple[float, float]:
    """1 + m·Σ(p - q)² less what the noise adds, and its variance by the noise."""
    cells, apart = len(values), values - values.mean()
    energy = float((apart**2).sum()) - (cells - 1) * noise
    scale = cells / total**2
    variance = _FOURTH * cells * noise**2 + 4.0 * noise * max(energy, 0.0)
    return 1.0 + scale * energy, scale**2 * variance
