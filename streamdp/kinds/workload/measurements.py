"""Measurements of a release of a workload: noisy counts of the cells of each measured item.

From what was drawn and from public facts alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from streamdp.kinds.workload.drawing.design import fitted_variance
from streamdp.kinds.workload.drawing.weights import Drawn
from streamdp.kinds.workload.fitting import refit
from streamdp.kinds.workload.fitting.state import from_json, to_json
from streamdp.mechanisms.noise import law_of, noise_of
from streamdp.types import Json, Measurement, MeasurementTerms

if TYPE_CHECKING:
    from streamdp.kinds.workload.kind import WorkloadRelease


def measured(kind: WorkloadRelease, drawn: Drawn) -> Iterator[Measurement]:
    """The counts of each item that was measured; one may be measured twice."""
    mechanism = kind.mechanism
    for number, each in enumerate(drawn.measured):
        assert each.noise is not None, "what is drawn has noise"  # noqa: S101
        law = law_of(each.noise)
        terms = MeasurementTerms(
            "table",
            _question(kind, each.place),
            part=kind.names[each.place],
            stage=number,
            noise=law,
            share=law.amount / mechanism.amount,
            relation=mechanism.relation,
        )
        yield Measurement(terms, numbers=tuple(map(int, each.values.tolist())))


def replayed(kind: WorkloadRelease, state: Json, measurements: Sequence[Measurement]) -> Json:
    """The state after a release, from items that are still there; None if none is."""
    workload = kind.mechanism.workload
    found = []
    for each in measurements:
        place = kind.names.index(each.terms.part) if each.terms.part in kind.names else None
        if place is None or each.terms.question != _question(kind, place):
            continue
        assert each.terms.noise is not None, "counts have noise"  # noqa: S101
        noise = noise_of(each.terms.noise)
        values = np.array(each.numbers, dtype=np.float64)
        found.append(refit.Measurement(place, values, fitted_variance(noise), noise))
    if not found:
        return None
    memory = from_json(state, workload)
    return to_json(memory.after(kind.mechanism.fitting(memory).fit(tuple(found))))


def _question(kind: WorkloadRelease, place: int) -> Json:
    """The axes of an item, the cells that it is a partition of, and which records count."""
    item = kind.mechanism.workload.items[place]
    about: Json = {"axes": [kind.axis(axis) for axis in item.axes]}
    about |= {} if item.labels is None else {"cells": item.labels.tolist()}
    return about | ({} if kind.where is None else {"where": kind.where})
