"""Measurements of a release of statistics: the noisy integers of each part of each measure.

A table of distances and the sums beside it are about one clip, which earlier releases have chosen:
each says its centre, its reach and its unit. From what was drawn and from public facts alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from streamdp.kinds.statistics.measures.moments import MomentOf
from streamdp.kinds.statistics.measures.protocol import AskedPart, Measure
from streamdp.mechanisms.noise import law_of, noise_of
from streamdp.types import (
    Json,
    Measurement,
    MeasurementTerms,
    SumQuery,
    UnitQuery,
)
from streamdp.types.measurements import Form

if TYPE_CHECKING:
    from streamdp.kinds.statistics.kind import Noisy, Statistics, StatisticsPlan


def measured(
    kind: Statistics, plan: StatisticsPlan, noisy: Sequence[Noisy]
) -> Iterator[Measurement]:
    """The integers of each group, by measure and by part."""
    drawn = zip(kind.measures, kind.shares, plan.asked, noisy, strict=True)
    for measure, share, asked, vectors in drawn:
        given = _clip(measure, plan.state.get(measure.name))
        for stage, (part, vector) in enumerate(zip(asked, vectors, strict=True)):
            size = len(vector) // len(kind.groups)
            for place, group in enumerate(kind.groups):
                terms = MeasurementTerms(
                    _form(part),
                    _question(kind, measure),
                    part=measure.name,
                    stage=stage,
                    group=group,
                    noise=law_of(part.noise),
                    share=share,
                    relation=kind.neighbours,
                )
                numbers = tuple(vector[place * size : (place + 1) * size])
                yield Measurement(terms, numbers=numbers, given=given)


def replayed(
    kind: Statistics, state: Json, measurements: Sequence[Measurement], weekday: int | None
) -> Json:
    """The state after a release; measures that it lacked keep theirs. None if it lacked all."""
    taught: dict[str, Json] = {}
    for measure, price in kind.prices():
        asked = _question(kind, measure)
        found = [
            each
            for each in measurements
            if each.terms.part == measure.name and each.terms.question == asked
        ]
        if not found:
            continue
        before = _meeting(measure, state.get(measure.name), found[0].given)
        parts = measure.asked(before, price)
        stages = [list(each) for _, each in groupby(found, key=lambda each: each.terms.stage)]
        if len(stages) != len(parts):
            continue
        with np.errstate(all="ignore"):
            taught[measure.name], _ = measure.follow(
                before,
                tuple(map(_as_drawn, parts, stages)),
                [tuple(number for each in stage for number in each.numbers) for stage in stages],
                tuple(each.terms.group for each in stages[0]),
                weekday,
            )
    return {**state, **taught} if taught else None


def _question(kind: Statistics, measure: Measure) -> Json:
    """What is measured, and which records count."""
    about: Json = {"measure": measure.signature()}
    about |= {} if kind.where is None else {"where": kind.where}
    return about | ({"by": list(kind.by)} if kind.by else {})


def _form(part: AskedPart) -> Form:
    match part.part:
        case SumQuery():
            return "sums"
        case UnitQuery():
            return "units"
        case _:
            return "table"


def _clip(measure: Measure, state: Json) -> Json:
    """Centre, reach and unit that a batch is clipped to; None where nothing is."""
    if not isinstance(measure, MomentOf):
        return None
    clip = measure.clip(state)
    return {"centre": clip.centre, "reach": clip.reach, "unit": clip.unit}


def _meeting(measure: Measure, state: Json, given: Json) -> Json:
    """The state, with the clip that a batch was clipped to.

    It has another where releases from before there were measurements chose it.
    """
    if not isinstance(measure, MomentOf) or _clip(measure, state) == given:
        return state
    clip = measure.clip(state)
    same = clip.centre == given["centre"] and clip.unit == given["unit"]
    bare = type(clip)(given["centre"], given["reach"], given["unit"], clip.scale)
    met = replace(clip, reach=given["reach"]) if same else bare
    return {**(state or {}), "clip": met.stored()}


def _as_drawn(part: AskedPart, stage: Sequence[Measurement]) -> AskedPart:
    """A part, with the noise that it was drawn with."""
    law = stage[0].terms.noise
    assert law is not None, "integers of statistics have noise"  # noqa: S101
    return replace(part, noise=noise_of(law))
