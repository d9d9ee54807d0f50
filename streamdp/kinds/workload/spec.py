"""The release kind `workload`, and counts that its releases were not asked for.

Such counts follow from published rows: free, with their error.

A release of marginals determines its distribution: of all distributions with these marginals it is
the one of largest entropy. Fitting finds it again, and any count over the axes is a sum of it.
Post-processing of what was published.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamdp.errors import ConfigurationError
from streamdp.kinds.axes import condition, labels
from streamdp.kinds.spec import KindSpec
from streamdp.kinds.workload.accuracy import AverageError
from streamdp.kinds.workload.answers import RECORD, TOTAL
from streamdp.kinds.workload.build import build, check, dimensions, items
from streamdp.kinds.workload.fitting.distribution import (
    MOST_CELLS,
    Axes,
    DomainMasses,
    Workload,
    distribution,
    elimination_size,
)
from streamdp.kinds.workload.fitting.spread import WIDTH
from streamdp.kinds.workload.section import WorkloadSection
from streamdp.types import Dimension, FloatArray, IntArray, Row

if TYPE_CHECKING:
    from streamdp.kinds.study import Study

_QUESTION = re.compile(r"\s*count(\s+where\s+(?P<condition>.+))?\s*", re.IGNORECASE | re.DOTALL)
_SWEEPS = 300
_STILL = 1e-5
_LEAST = 1e-4
"""Masses are published to three decimals: what is less is taken as this."""

_LARGE = 5.0
"""Records of an answer that says how errors grow with counts."""


@dataclass(frozen=True, slots=True)
class ExpectedAnswer:
    """A count of a release.

    Args:
        value: Of its distribution.
        lower: End of a 95 % interval.
        upper: The other.
        within: The published answer that holds all axes of the question; None if none does, and
            then the interval is a guess from those of other answers.
    """

    value: float
    lower: float
    upper: float
    within: str | None


def ask(section: WorkloadSection, rows: Iterable[Row], text: str) -> ExpectedAnswer:
    """The answer to `count where CONDITION`, from the rows of one release.

    Args:
        section: What was released, as configured.
        rows: Published, of one group.
        text: Conditions are those of `predicates`.

    Raises:
        ConfigurationError: The question is none, or rows are not those of the section.
    """
    axes, known = dimensions(section), [row for row in rows if row.get("answer") != RECORD]
    names, workload = items(section, axes)
    asked, cells = _asked(text, axes)
    if workload.cells > MOST_CELLS and elimination_size(workload, asked) > MOST_CELLS:
        raise ConfigurationError(
            f"this question ties together tables of more than {MOST_CELLS} cells",
            hint="ask about fewer axes",
        )
    values, halves = _published(names, workload, axes, known)
    found = _fitted(workload, values)
    value = float((found.marginal(asked).reshape(-1) * cells).sum())
    within = _holding(workload, asked)
    if within is None:
        half = _guess(value, values, halves)
    else:
        half = _half(workload, axes, within, text, halves[within])
    lower, upper = max(value - half, 0.0), value + half
    return ExpectedAnswer(value, lower, upper, None if within is None else names[within])


def _asked(text: str, axes: tuple[Dimension, ...]) -> tuple[Axes, IntArray]:
    match = _QUESTION.fullmatch(text)
    if match is None:
        raise ConfigurationError(
            f"{text!r} is no question", hint="write: count where carrier = 'AA' and hour < 9"
        )
    if match["condition"] is None:
        return (), np.ones(1, dtype=np.int64)
    try:
        return condition(match["condition"], axes)
    except ValueError as error:
        raise ConfigurationError(f"{text!r}: {error}") from None


def _published(
    names: tuple[str, ...],
    workload: Workload,
    axes: tuple[Dimension, ...],
    rows: list[Row],
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Values and half widths of every item's cells."""
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(str(row.get("answer")), []).append(row)
    if set(by_name) != {TOTAL, *names}:
        raise ConfigurationError(
            "this release has other answers than the configuration",
            hint="ask with the configuration that it was made with; synthetic records have none",
        )
    total = _number(by_name[TOTAL][0], "value")
    values, halves = [], []
    for name, item in zip(names, workload.items, strict=True):
        found = by_name[name]
        value, half = np.zeros(item.size), np.zeros(item.size)
        if item.labels is not None:
            holds = _number(found[0], "value")
            value[:] = max(total - holds, 0.0), holds
            half[:] = _number(found[0], "upper") - holds
        else:
            places = [
                {text: at for at, text in enumerate(labels(axes[axis]))} for axis in item.axes
            ]
            for row in found:
                at = tuple(
                    known[str(row[axes[axis].name])]
                    for axis, known in zip(item.axes, places, strict=True)
                )
                cell = int(np.ravel_multi_index(at, item.shape))
                value[cell] = _number(row, "value")
                half[cell] = _number(row, "upper") - value[cell]
        values.append(value)
        halves.append(half)
    return values, halves


def _number(row: Mapping[str, float | str | int | None], name: str) -> float:
    return float(row[name] or 0.0)


def _fitted(workload: Workload, values: list[FloatArray]) -> DomainMasses:
    """Iterative proportional fitting from the uniform distribution."""
    zeros = tuple(np.zeros(item.size) for item in workload.items)
    total = max(float(values[0].sum()), _LEAST)
    found = distribution(workload, zeros, total)
    for _ in range(_SWEEPS):
        moved = 0.0
        for place, (item, value) in enumerate(zip(workload.items, values, strict=True)):
            masses = found.masses(item)
            found.tilt(place, np.log((value + _LEAST) / (masses + _LEAST)))
            moved = max(moved, float(np.abs(value - masses).sum()) / total)
        if moved < _STILL:
            break
    return found


def _holding(workload: Workload, asked: Axes) -> int | None:
    """The smallest marginal that has all axes of a question."""
    places = [
        place
        for place, item in enumerate(workload.items)
        if item.labels is None and set(asked) <= set(item.axes)
    ]
    return min(places, key=lambda place: workload.items[place].size, default=None)


def _half(
    workload: Workload, axes: tuple[Dimension, ...], place: int, text: str, halves: FloatArray
) -> float:
    """Half width of the sum of the marginal's cells that are asked for, taken as independent."""
    item = workload.items[place]
    asked, cells = _asked(text, axes)
    shape = [item.shape[at] if axis in asked else 1 for at, axis in enumerate(item.axes)]
    chosen = np.broadcast_to(cells.reshape(shape), item.shape).reshape(-1)
    return math.sqrt(float((halves**2 * chosen).sum()))


def _guess(value: float, values: list[FloatArray], halves: list[FloatArray]) -> float:
    """Extrapolate a half width from how variances of other answers grow with their counts."""
    known, widths = np.concatenate(values), np.concatenate(halves) / WIDTH
    large = known >= _LARGE
    shown = (widths[large] ** 2 - known[large]) / known[large] ** 2
    omega = max(float(np.median(shown)), 0.0) if large.any() else 1.0
    return WIDTH * math.sqrt(value + omega * value**2 + 0.25)


def _study() -> Study:
    """Study of the kind, imported by `simulate` alone."""
    from streamdp.kinds.workload.study import WorkloadStudy

    return WorkloadStudy()


SPEC = KindSpec("workload", WorkloadSection, check, build, AverageError(), study=_study, ask=ask)
