"""What clips may hide of sums over a period, from the distances that were released beside them.

Sums of all batches leave out what lies beyond the same reach: it adds up with the days and does not
average out, unlike noise. A period is treated as one batch of all its records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from streamdp.mechanisms.clip import MEMORY, Clip
from streamdp.mechanisms.noise import noise_of
from streamdp.types import FloatArray, Grid, Json, MeasuredRelease

DOUBT = 1.959964
"""Deviations of a 95 % interval."""

Group = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hidden:
    """What clipping may hide of a sum.

    Args:
        below: By how much the sum may lie below that of clipped values, in all batches and groups
            alike: it adds up.
        above: By how much above.
        chance: Half of a 95 % interval of how far it differs from that by chance of records, and by
            noise of their number, which are independent between groups.
    """

    below: float
    above: float
    chance: float


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Noisy numbers of records by distance, of one release.

    Args:
        place: Of the release.
        question: What is summed.
        given: Centre, reach and unit of the clip.
        counts: Of each group.
        variance: Of the noise of each number.
    """

    place: int
    question: Json
    given: Json
    counts: dict[Group, FloatArray]
    variance: float


@dataclass(frozen=True, slots=True, eq=False)
class Distances:
    """How far values of a sum lay from 0, by all releases that tell it.

    Args:
        tables: In the order of the releases.
    """

    tables: tuple[_Table, ...]

    @classmethod
    def of(cls, releases: Sequence[MeasuredRelease], part: str) -> Distances:
        """The distances of a measure, from releases with their measurements."""
        found = list[_Table]()
        for place, release in enumerate(releases):
            own = [
                each
                for each in release.measurements
                if each.terms.part == part and each.terms.form == "table" and each.given
            ]
            if not own:
                continue
            law = own[0].terms.noise
            assert law is not None, "numbers have noise"  # noqa: S101
            counts = {each.terms.group: np.array(each.numbers, dtype=float) for each in own}
            variance = float(noise_of(law).variance)
            found.append(_Table(place, own[0].terms.question, own[0].given, counts, variance))
        return cls(tuple(found))

    def hidden(self, places: Sequence[int], group: Group) -> Hidden:
        """What clipping may hide of a group's sum over a period.

        Batches around the period tell of its distances too, the less the farther they are.

        Args:
            places: Of the period's releases, whose clips are the same.
            group: Of the job's groups.
        """
        inside = set(places)
        own = [each for each in self.tables if each.place in inside]
        column, clip = self._clip(own[-1], min(places), max(places))
        mean, deviation = clip.beyond()
        low, high = clip.within(column, np.array(mean))
        below, above = float(low), float(high)
        most = max(below, above)
        counted = max(sum(float(each.counts[group].sum()) for each in own), 0.0)
        noise = sum(each.counts[group].size * each.variance for each in own)
        of_records = deviation * (most / mean if mean > 0 else 0.0) * math.sqrt(counted)
        chance = DOUBT * math.hypot(of_records, most * math.sqrt(noise))
        unit = float(column.resolution)
        return Hidden(below * counted * unit, above * counted * unit, chance * unit)

    def _clip(self, about: _Table, first: int, last: int) -> tuple[Grid, Clip]:
        """The column, and the clip of a release with the distances of a period and around it."""
        alike = [
            each
            for each in self.tables
            if each.question == about.question
            and each.given["unit"] == about.given["unit"]
            and each.given["centre"] == about.given["centre"]
        ]
        weights = [MEMORY ** max(first - each.place, each.place - last, 0) for each in alike]
        both = list(zip(weights, alike, strict=True))
        pooled = sum(weight * sum(each.counts.values()) for weight, each in both)
        spread = sum(weight**2 * len(each.counts) * each.variance for weight, each in both)
        resolution, low, high, *start = about.question["measure"]["grid"]
        column = Grid(Fraction(resolution), low, high)
        clip = replace(
            Clip.started(column, (start[0], start[1]), summed=True),
            **about.given,
            distances=tuple(np.asarray(pooled).tolist()),
            spread=spread,
        )
        return column, clip
