"""What clips may hide of sums over a period, from the distances that were released beside them.

Sums of all batches leave out what lies beyond their reach: it adds up with the days and does not
average out, unlike noise. Releases of a period that were clipped alike are treated as one batch of
all their records.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from streamdp.answers import LEVEL
from streamdp.mechanisms.clip import MEMORY, Clip
from streamdp.mechanisms.noise import noise_of
from streamdp.types import FloatArray, Grid, Json, MeasuredRelease

Group = tuple[str, ...]

Sides = tuple[float, float]
"""Below and above."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """What clipping may hide of a sum.

    Args:
        likely: By how much the sum is likely to lie below and above that of clipped values, in all
            batches and groups alike: it adds up.
        doubt: How much more it may be, as far as the noise of distances tells: this is one and the
            same mistake in all batches and groups, so it adds up, but apart from other noise.
        chance: Half of a 95 % interval of how far it differs from that by chance of records, and by
            noise of their number, which are independent between groups.
    """

    likely: Sides
    doubt: Sides
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


_Beyond = tuple[Grid, float, float, Sides, Sides]
"""What lies beyond the reach of a record of any group: the column, the possible mean and the root
mean square, and how much of it lies below and above, each as is likely and as is possible."""


@dataclass(frozen=True, slots=True, eq=False)
class Distances:
    """How far values of a sum lay from 0, by all releases that tell it.

    Args:
        tables: In the order of the releases.
    """

    tables: tuple[_Table, ...]
    _known: dict[tuple[int, int, int], _Beyond] = field(default_factory=dict, init=False)

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
        Stretches that were clipped to different ranges hide different parts, which add up.

        Args:
            places: Of the period's releases.
            group: Of the job's groups.
        """
        inside, alike = set(places), dict[str, list[_Table]]()
        for each in self.tables:
            if each.place in inside:
                alike.setdefault(json.dumps(each.given, sort_keys=True), []).append(each)
        found = [self._alike(own, min(places), max(places), group) for own in alike.values()]
        likely, doubt = (
            (
                sum(getattr(each, name)[0] for each in found),
                sum(getattr(each, name)[1] for each in found),
            )
            for name in ("likely", "doubt")
        )
        return Hidden(likely, doubt, math.hypot(*(each.chance for each in found)))

    def _alike(self, own: Sequence[_Table], first: int, last: int, group: Group) -> Hidden:
        """Return what clipping may hide of a sum over releases that were clipped alike."""
        column, possible, deviation, (low, most_low), (high, most_high) = self._beyond(
            own[-1], first, last
        )
        most = max(most_low, most_high)
        counted = max(sum(float(each.counts[group].sum()) for each in own), 0.0)
        noise = sum(each.counts[group].size * each.variance for each in own)
        of_records = deviation * (most / possible if possible > 0 else 0.0) * math.sqrt(counted)
        chance = LEVEL * math.hypot(of_records, most * math.sqrt(noise))
        unit = float(column.resolution)
        each = counted * unit
        doubt = (most_low - low) * each, (most_high - high) * each
        return Hidden((low * each, high * each), doubt, chance * unit)

    def _beyond(self, about: _Table, first: int, last: int) -> _Beyond:
        """What lies beyond the reach of a record of any group, as the pooled distances tell."""
        key = about.place, first, last
        if key not in self._known:
            column, clip = self._clip(about, first, last)
            likely, possible, deviation = clip.beyond()
            low, high = clip.within(column, np.array([likely, possible]))
            sides = (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))
            self._known[key] = column, possible, deviation, *sides
        return self._known[key]

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
