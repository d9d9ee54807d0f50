"""Rows of releases and of measurements for a person: rounded to what intervals support."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeGuard

from streamdp.reports.releases.sentences import digits_of_amounts, of_size, of_width, written
from streamdp.reports.releases.series import MEASURED, shown
from streamdp.text import Figure
from streamdp.types import Column, Json, MeasuredRelease, Measurement, Row
from streamdp.types.measurements import Form

Told = dict[str, Json]
Ends = tuple[float, float]

MOST_DIGITS = 9
"""The most digits after the point."""


def told_rows(rows: Sequence[Row], columns: Sequence[Column]) -> tuple[Told, list[Told]]:
    """What all rows share, and each row with the rest; columns of nothing are left out.

    Units stand in the heads, and an interval follows its value in a column of its own.
    """
    found: dict[str, list[Json]] = {}
    common: Told = {}
    for column in columns:
        if column.role in ("lower", "upper"):
            continue
        cells, ends = told_column(rows, column, columns)
        if not any(cells):
            continue
        if len(rows) > 1 and len(set(cells)) == len(set(ends)) == 1:
            common[head_of(column)] = f"{cells[0]} ({ends[0]})" if ends[0] else cells[0]
            continue
        found[head_of(column)] = cells
        if column.role != "value":
            continue
        units = [column.unit_of(row.get(MEASURED[0])) for row in rows]
        if column.units and len(set(units)) == 1:
            common["unit"] = units[0]
        elif column.units:
            found["unit"] = list(units)
        if any(ends):
            found[_of_interval(column, columns)] = list(ends)
    return common, [{name: cells[at] for name, cells in found.items()} for at in range(len(rows))]


def told_answers(rows: Sequence[Mapping[str, Json]]) -> list[Told]:
    """Answers to the digits that their intervals support; chances to three, never one or none."""
    return [_told_answer(row) for row in rows]


def _told_answer(row: Mapping[str, Json]) -> Told:
    value = row.get("change", row.get("value"))
    lower, upper = row.get("lower"), row.get("upper")
    told = dict(row)
    if not (_is_number(value) and _is_number(lower) and _is_number(upper)):
        return told
    digits = digits_of_amounts(value, lower, upper)
    for name in ("value", "before", "after", "change", "lower", "upper"):
        if _is_number(row.get(name)):
            told[name] = Figure(_rounded(float(row[name]), digits))
    for name in ("records_differ", "process_rose", "process_changed"):
        if _is_number(row.get(name)):
            told[name] = Figure(f"{min(max(float(row[name]), 0.001), 0.999):.3f}")
    return told


def told_column(
    rows: Sequence[Row], column: Column, columns: Sequence[Column]
) -> tuple[list[Json], list[Figure | None]]:
    """Cells of a column and their intervals: of rows that measure the same, with the same digits.

    A number without an interval of its own goes by that of the value it is about.
    """
    values = [row.get(column.name) for row in rows]
    are_numbers = all(each is None or _is_number(each) for each in values)
    if column.role == "label" or not are_numbers:
        units = [column.unit_of(row.get(MEASURED[0])) for row in rows]
        said = [_text(each) for each in values]
        texts = [
            shown("", t, unit) if t and unit else t for t, unit in zip(said, units, strict=True)
        ]
        return texts, [None] * len(rows)
    own = [interval_of(row, column.name, columns) for row in rows]
    near = [each or interval_of(rows[at], column.about, columns) for at, each in enumerate(own)]
    alike: dict[tuple[Json, ...], list[int]] = {}
    for at, row in enumerate(rows):
        alike.setdefault(tuple(row.get(name) for name in MEASURED), []).append(at)
    cells: list[Json] = [None] * len(rows)
    ends: list[Figure | None] = [None] * len(rows)
    for places in alike.values():
        digits = _digits([values[at] for at in places], [near[at] for at in places])
        for at in places:
            value, reach = values[at], own[at]
            cells[at] = Figure(_rounded(float(value), digits)) if _is_number(value) else None
            if reach is not None:
                low, high = (_rounded(each, digits) for each in reach)
                ends[at] = Figure(f"{low} to {high}")
    return cells, ends


def head_of(column: Column) -> str:
    """The name of a column with its unit, if that says more."""
    return f"{column.name} ({column.unit})" if column.unit not in ("", column.name) else column.name


def interval_of(row: Mapping[str, Json], name: str, columns: Sequence[Column]) -> Ends | None:
    """The interval around one value of a row; None where there is none."""
    ends = {each.role: row.get(each.name) for each in columns if name and each.about == name}
    lower, upper = ends.get("lower"), ends.get("upper")
    return (float(lower), float(upper)) if _is_number(lower) and _is_number(upper) else None


def _is_number(value: Json) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _digits(values: Sequence[Json], ends: Sequence[Ends | None]) -> int:
    """Digits after the point that most intervals support, two of their width; no more than drawn.

    Numbers without intervals have four digits in all, the largest of them.
    """
    known = [float(each) for each in values if _is_number(each)]
    numbers = list(filter(math.isfinite, known))
    widths = [upper - lower for lower, upper in filter(None, ends) if upper > lower]
    drawn = 0 if all(each.is_integer() for each in numbers) else MOST_DIGITS
    if widths and math.isfinite(sum(widths)):
        return min(of_width(statistics.median_low(widths)), drawn)
    largest = max(map(abs, numbers), default=0.0)
    return min(of_size(largest, 4), drawn) if largest and drawn else drawn


def _rounded(number: float, digits: int) -> str:
    return written(number, digits) if math.isfinite(number) else str(number)


def _text(value: Json) -> Json:
    return f"{value:g}" if isinstance(value, float) else None if value is None else str(value)


def _of_interval(column: Column, columns: Sequence[Column]) -> str:
    """Head of the column of an interval: how often it holds the truth."""
    ends = (each for each in columns if each.about == column.name and each.role == "lower")
    level = next(ends).level
    return f"{column.name} {100 * level:g} %" if level else f"{column.name} from, to"


SAID: Mapping[Form, str] = {
    "counts": "noisy counts between cuts",
    "values": "drawn values, with their mechanism",
    "table": "noisy tables of counts",
    "sums": "noisy sums of clipped values, with their clips",
    "units": "noisy numbers of units",
    "losses": "noisy integers that losses follow from",
    "choice": "chosen candidates",
    "found": "keys that were found, and noisy counts of known ones",
    "gradient": "noisy gradients, bought for a learner",
}
"""What the numbers of each form are."""


def rows_of(job: str, releases: Iterable[MeasuredRelease]) -> Iterator[dict[str, Json]]:
    """Rows of the measurements of a job, with what it takes to read each by itself."""
    for release in releases:
        about: dict[str, Json] = {
            "release_id": release.id,
            "job": job,
            "batch": release.batch.key,
            "window_start": release.batch.start,
            "window_end": release.batch.end,
            "kind": release.kind,
        }
        for number, each in enumerate(release.measurements):
            yield about | {"number": number} | fields_of(each)


def fields_of(measurement: Measurement) -> dict[str, Json]:
    """The terms of a measurement and its numbers; what is not said there is null."""
    names = ("form", "part", "stage", "group", "question", "noise", "share", "relation", "unit")
    usual = {"part": "", "stage": 0, "group": [], "share": "1", "relation": "add-remove"}
    said = measurement.terms.to_json()
    return {
        **{name: said.get(name, usual.get(name)) for name in names},
        "question_digest": measurement.terms.digest,
        "targets": said.get("targets"),
        "mechanism": said.get("mechanism"),
        "cells": list(measurement.cells),
        "numbers": list(measurement.numbers),
        "given": measurement.given,
    }


def measurements_in_words(releases: Sequence[tuple[str, Sequence[Form]]]) -> str:
    """What is kept of the releases of a job, and since when.

    >>> measurements_in_words([])
    'none: nothing was released'
    >>> measurements_in_words([("1", []), ("2", ["counts", "counts"])])
    'noisy counts between cuts, of 1 release; no measurements before 2'

    Args:
        releases: The batch of each, and the forms of its measurements.
    """
    measured = [(batch, forms) for batch, forms in releases if forms]
    if not measured:
        none = "no release has any: they are kept from now on"
        return none if releases else "none: nothing was released"
    counts = Counter(form for _, forms in measured for form in dict.fromkeys(forms))
    said = "; ".join(
        f"{SAID[form]}, of {count} release{'s' * (count > 1)}" for form, count in counts.items()
    )
    if len(measured) == len(releases):
        return said
    return f"{said}; no measurements before {measured[0][0]}"
