"""What releases of a period say together where their values do not add up over batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from streamdp.reports.releases.series import Picture, picture, text_of
from streamdp.types import Column, Json, Release

Labels = tuple[str | None, ...]
Interval = tuple[float, float, float]


def averages(releases: Sequence[Release], columns: Sequence[Column]) -> dict[Labels, Interval]:
    """Mean of the values of each row that has an interval in all releases, by the row's labels.

    Its ends are the means of the ends, as if all values were off the same way: what clips hide is
    the same in all of them, and noise is less than that.
    """
    value = next((each.name for each in columns if each.role == "value"), "")
    ends = {each.role: each.name for each in columns if value and each.about == value}
    if not {"lower", "upper"} <= ends.keys():
        return {}
    names = [each.name for each in columns if each.role == "label"]
    found: dict[Labels, list[Interval]] = {}
    for release in releases:
        for row in release.rows:
            three = [row.get(name) for name in (value, ends["lower"], ends["upper"])]
            if all(isinstance(each, int | float) for each in three):
                at, low, high = (float(each or 0) for each in three)
                found.setdefault(_labels(row, names), []).append((at, low, high))
    return {
        labels: (fmean(e[0] for e in own), fmean(e[1] for e in own), fmean(e[2] for e in own))
        for labels, own in found.items()
        if len(own) == len(releases)
    }


def choices(releases: Sequence[Release], columns: Sequence[Column]) -> Counter[str]:
    """How often each candidate was chosen; nothing of a job that chooses none."""
    if not releases or not any(each.chart == "choices" for each in columns):
        return Counter()
    return chosen(picture(releases, columns))


def chosen(whole: Picture) -> Counter[str]:
    """How often each candidate was chosen, of a job that chooses."""
    cells = whole.series[0].cells if whole.series else ()
    return Counter(str(each) for each in cells if each is not None)


def found_keys(releases: Sequence[Release], columns: Sequence[Column]) -> tuple[str, ...]:
    """Keys that any release found, in their order; nothing of a job whose rows are not found."""
    if not any(each.role == "state" for each in columns):
        return ()
    names = [each.name for each in columns if each.role == "label"]
    said = (_labels(row, names) for release in releases for row in release.rows)
    return tuple(dict.fromkeys(" · ".join(filter(None, labels)) for labels in said))


def _labels(row: Mapping[str, Json], names: Sequence[str]) -> Labels:
    return tuple(None if row.get(name) is None else text_of(row[name]) for name in names)
