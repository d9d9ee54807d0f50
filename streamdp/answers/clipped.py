"""What clips hide of sums and means over a period, from the distances released beside them.

Sums of all batches leave out what lies beyond their reach: it adds up with the days and does not
average out, unlike noise. Its posterior is that of the pooled distances of the period and of the
batches around it (`mechanisms.overshoot`). Releases of a period that were clipped alike are treated
as one batch of all their records.

How many records a measure has is the sum of its distances. They cost a tenth of its price, so a
batch's own number is moved towards what the batches around it had, as a share of all records where
a count tells these, as far as noise explains how the numbers differ. A share is at most 1, and it
is 1 where no value is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from streamdp.answers import LEVEL
from streamdp.answers.counted import NoisyNumber
from streamdp.mechanisms.clip import DISTANCES, MEMORY, STAYS, Clip
from streamdp.mechanisms.noise import noise_of
from streamdp.mechanisms.overshoot import OF_BATCH, QUANTILES, Overshoot, half_widths
from streamdp.types import FloatArray, Grid, Json, MeasuredRelease

Group = tuple[str, ...]

AROUND = 28
"""Batches before and behind a period that tell how many records its batches have."""

SIGNS = (0.5, 1.0)
"""Parts of the mean overshoot by which a total is off, equally likely: the other tail may take half
of it back."""

BODY, OF_SPREAD = 0.8, 1.2816
"""Share of records that are near, and the distance up to it in spreads of a normal law."""

DOUBT = 2.0
"""Deviations of noise by which near distances may hold fewer records than were released."""

WHOLE = 0.5
"""Probability that all records of a measure have a value; else any share of them is as likely."""


@dataclass(frozen=True, slots=True, eq=False)
class Hidden:
    """What clips may hide of a total.

    Args:
        below: Equally probable amounts, ascending, by which it lies below that of clipped values.
        above: The same above.
    """

    below: FloatArray
    above: FloatArray

    def __add__(self, other: Hidden) -> Hidden:
        """What is hidden of both: how far tails reach is one and the same mistake."""
        return Hidden(self.below + other.below, self.above + other.above)

    def scaled(self, by: float) -> Hidden:
        """What is hidden of the total times a number; of a negative one the sides change places."""
        sides = (self.below, self.above) if by >= 0 else (self.above, self.below)
        return Hidden(*(abs(by) * side for side in sides))

    def widened(self, half: float) -> tuple[float, float]:
        """How far a total may lie below and above, given half the interval of its noise."""
        sides = np.array((self.below, self.above))
        if not sides.any():
            return half, half
        alone = not sides.any(axis=1).all()
        noise = np.full((2, 1, 1), half / LEVEL)
        below, above = half_widths(noise, sides[:, None], one_sided=alone)[:, 0].tolist()
        return below, above


NOTHING = Hidden(np.zeros(QUANTILES * len(SIGNS)), np.zeros(QUANTILES * len(SIGNS)))


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """How many records of a group some batches have.

    Args:
        each: Of each batch.
        variance: Of each, apart from what all have in common.
        of_all: Variance of their sum.
    """

    each: FloatArray
    variance: FloatArray
    of_all: float


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Noisy numbers of records by distance, of one release.

    Args:
        question: What is summed.
        given: Centre, reach and unit of the clip.
        counts: Of each group.
        variance: Of the noise of each number.
        records: Noisy number of all records of a group, and its variance, where they are counted.
    """

    question: Json
    given: Json
    counts: dict[Group, FloatArray]
    variance: float
    records: dict[Group, NoisyNumber]

    def alike(self, other: _Table) -> bool:
        """Whether distances of both are of the same values, from about the same centre."""
        unit = self.given["unit"]
        apart = abs(self.given["centre"] - other.given["centre"])
        same = self.question == other.question and unit == other.given["unit"]
        return bool(same and apart <= STAYS * unit)


@dataclass(frozen=True, slots=True, eq=False)
class Distances:
    """How far values of a sum or mean lay from the centre of its clip, in all releases.

    Args:
        tables: By place of the release.
    """

    tables: dict[int, _Table]
    _known: dict[tuple[int, int, int], tuple[Overshoot, Grid, Clip]] = field(
        default_factory=dict, init=False
    )

    @classmethod
    def of(
        cls,
        releases: Sequence[MeasuredRelease],
        part: str,
        records: Callable[[MeasuredRelease], dict[Group, NoisyNumber]],
    ) -> Distances:
        """The distances of a measure, from releases with their measurements.

        Args:
            releases: In order.
            part: Name of the measure.
            records: How many records of a group a release has counted.
        """
        found = dict[int, _Table]()
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
            about = own[0].terms.question, own[0].given
            found[place] = _Table(*about, counts, variance, records(release))
        return cls(found)

    def near(self, places: Sequence[int], group: Group) -> list[int]:
        """The releases of a period and around it that tell the number of a group's records."""
        around = range(min(places) - AROUND, max(places) + AROUND + 1)
        return [
            place for place in around if place in self.tables and group in self.tables[place].counts
        ]

    def numbers(self, places: Sequence[int], group: Group) -> Numbers:
        """How many records of a group with a value some batches have.

        Noisy totals, moved towards the share of the counted records that these had in the period
        and the batches around it, by as much as noise explains how they differ from it.

        Args:
            places: Of the releases.
            group: Which.
        """
        known = [self.tables[place] for place in self.near(places, group)]
        totals = np.array([each.counts[group].sum() for each in known])
        noise = np.array([DISTANCES * each.variance for each in known])
        counted = all(group in each.records for each in known)
        usual, doubt = np.array(
            [each.records[group] if counted else (1.0, 0.0) for each in known]
        ).T
        usual = np.maximum(usual, 1.0)
        share, unsure = float(totals.sum() / usual.sum()), float(noise.sum() / usual.sum() ** 2)
        share, follows = _of_all(share, unsure) if counted else (max(share, 0.0), 1.0)
        off, doubt = totals - share * usual, share**2 * doubt
        spread = max(float(np.mean(off**2 - noise - doubt)), 0.0)
        if counted:
            spread = min(spread, share * (1.0 - share) * float(np.mean(usual**2)))
        kept = (spread + doubt) / (spread + doubt + noise)
        inside = np.isin(self.near(places, group), places)
        own, lost = kept * inside, (1.0 - kept) * inside
        others = float(lost @ usual)
        weights = own + follows * others / usual.sum()
        of_noise = float(weights**2 @ noise) + float(lost**2 @ doubt)
        of_noise += (1.0 - follows) * follows * unsure * others**2
        of_spread = spread * float(lost @ lost) * (1.0 - float(inside.mean()))
        found = np.maximum(totals - (1.0 - kept) * off, 0.0)
        return Numbers(found[inside], (kept * noise)[inside], of_noise + of_spread)

    def hidden(
        self, places: Sequence[int], groups: Sequence[tuple[Group, Numbers]]
    ) -> tuple[Hidden, float]:
        """What clips may hide of a sum over a period, and half the interval of chance about that.

        Batches around the period tell of its distances too, the less the farther they are.
        Stretches that were clipped to different ranges hide different parts, which add up.

        Args:
            places: Of the period's releases.
            groups: With their numbers of records in each of these releases.
        """
        alike: dict[tuple[int, int, int], list[int]] = {}
        for number, place in enumerate(places):
            given = self.tables[place].given
            about = round(given["centre"] / (STAYS * given["unit"]))
            alike.setdefault((given["reach"], given["unit"], about), []).append(number)
        found, variance = NOTHING, 0.0
        for own in alike.values():
            overshoot, column, clip = self._beyond(places[own[-1]], min(places), max(places))
            unit, room = float(column.resolution), clip.room(column)
            records = sum(float(each.each[own].sum()) for _, each in groups)
            doubt = sum(each.of_all * len(own) / len(places) for _, each in groups)
            below, above = (_parts(overshoot.means, each) for each in room)
            found += Hidden(below, above).scaled(records * unit)
            chance = OF_BATCH**2 * overshoot.square * records
            most = min(float(overshoot.means.mean()), max(room))
            variance += (min(chance, (max(room) * records) ** 2) + doubt * most**2) * unit**2
        return found, LEVEL * math.sqrt(variance)

    def _beyond(self, place: int, first: int, last: int) -> tuple[Overshoot, Grid, Clip]:
        """What lies beyond the reach of a release, by the pooled distances; with its column."""
        key = place, first, last
        if key not in self._known:
            column, clip = self._clip(self.tables[place], first, last)
            self._known[key] = Overshoot.of(clip), column, clip
        return self._known[key]

    def _clip(self, about: _Table, first: int, last: int) -> tuple[Grid, Clip]:
        """The column, and the clip of a release with the distances of a period and around it."""
        both = [
            (MEMORY ** max(first - place, place - last, 0), each)
            for place, each in self.tables.items()
            if each.alike(about)
        ]
        pooled = np.asarray(sum(weight * sum(each.counts.values()) for weight, each in both))
        spread = sum(weight**2 * len(each.counts) * each.variance for weight, each in both)
        if all(each.records.keys() >= each.counts.keys() for _, each in both):
            # How many records there are is known better than by the sum of all distances.
            usual = max(sum(w * each.records[g][0] for w, each in both for g in each.counts), 1.0)
            total = float(pooled.sum())
            share, follows = _of_all(total / usual, DISTANCES * spread / usual**2)
            pooled += (share * usual - total) / DISTANCES
            spread *= 1.0 - (1.0 - follows) / DISTANCES
        measure = about.question["measure"]
        resolution, low, high, *start = measure["grid"]
        column = Grid(Fraction(resolution), low, high)
        clip = replace(
            Clip.started(column, (start[0], start[1]), summed="sum" in measure),
            **about.given,
            distances=tuple(pooled.tolist()),
            spread=spread,
        )
        farthest = max(abs(low - clip.centre), abs(high - clip.centre))
        return column, replace(clip, farthest=farthest, scale=_spread(clip))


def _of_all(share: float, variance: float) -> tuple[float, float]:
    """The likely share of all records that have a value, and its variance over that of the noise.

    Args:
        share: By noisy numbers.
        variance: Of its noise.
    """
    sd = math.sqrt(variance)
    ends = max(share - 6.0 * sd, 0.0), min(share + 6.0 * sd, 1.0)
    tried = np.linspace(*ends, 201) if ends[0] < ends[1] else np.linspace(0.0, 1.0, 201)
    step = float(tried[1] - tried[0])
    prior = np.append(np.full(len(tried), (1.0 - WHOLE) * step), WHOLE)
    tried = np.append(tried, 1.0)
    logs = -0.5 * ((tried - share) / sd) ** 2
    weights = prior * np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = float(weights @ tried)
    return mean, min(float(weights @ (tried - mean) ** 2) / variance, 1.0)


def _parts(means: FloatArray, room: float) -> FloatArray:
    """What is hidden of a record's value on one side: nothing lies beyond the column's bounds."""
    return np.sort(np.outer(np.minimum(means, room), SIGNS).ravel())


def _spread(clip: Clip) -> float:
    """The guess, or the nearest spread of a normal law that near distances do not refute.

    A guess that is too wide says that far tails are likely, one that is too narrow that they are
    not, and no batch's noise refutes either; the near distances of many batches do. They are taken
    as far out, or in, as their noise may move them.
    """
    counts, ends = np.array(clip.distances), [0.0, *(float(end) for _, end in clip.edges())]
    total = max(float(counts.sum()), 1.0)
    noise = DOUBT * np.sqrt(clip.spread * np.arange(DISTANCES + 1)) / total
    upto = np.concatenate(([0.0], np.cumsum(counts) / total))
    fewest = np.maximum.accumulate(upto - noise) + 1e-9 * np.arange(DISTANCES + 1)
    most = np.minimum.accumulate((upto + noise)[::-1])[::-1] + 1e-9 * np.arange(DISTANCES + 1)
    farthest, nearest = (float(np.interp(BODY, each, ends)) for each in (fewest, most))
    return max(min(max(clip.scale, nearest / OF_SPREAD), farthest / OF_SPREAD), 1.0)
