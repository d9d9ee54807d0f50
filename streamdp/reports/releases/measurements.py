"""Measurements of releases as rows of a table, and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from streamdp.types import Json, MeasuredRelease, Measurement
from streamdp.types.measurements import Form

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


def in_words(releases: Sequence[tuple[str, Sequence[Form]]]) -> str:
    """What is kept of the releases of a job, and since when.

    >>> in_words([])
    'none: nothing was released'
    >>> in_words([("1", []), ("2", ["counts", "counts"])])
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
