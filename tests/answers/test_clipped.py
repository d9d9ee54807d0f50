"""Intervals of sums over periods hold what clips cut off: it adds up, and does not average out."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.answers import LEVEL
from streamdp.answers.job import Answer, Measured, mean, summed
from streamdp.errors import ConfigurationError
from streamdp.mechanisms.clip import DISTANCES
from streamdp.mechanisms.noise import noise_of
from streamdp.types import Batch, FloatArray, MeasuredRelease, Measurement, MeasurementTerms
from streamdp.types.measurements import NoiseLaw

DAYS, RECORDS, DAY = 28, 1000, 86_400
REACH = 120
"""Minutes: 2 % of the delays are longer."""

WIDE, TIGHT = (-200, 2000), (-200, 100)
COUNTED = NoiseLaw("rho", Fraction(1, 2000))
SUMMED = NoiseLaw("rho", Fraction(9, 2000), REACH)


def delays(chance: np.random.Generator, longest: float = 2000.0) -> FloatArray:
    """Minutes of a batch: most are small, and the tail is heavy."""
    late = chance.standard_t(2.5, RECORDS) * 25.0 + 10.0
    return np.rint(np.clip(late, -15.0, longest))


def released(
    days: list[dict[str, FloatArray]],
    bounds: tuple[int, int],
    chance: np.random.Generator,
    reaches: tuple[int, ...] = (REACH,),
) -> Measured:
    """A count and a clipped sum of each group of each day, with noise; reaches take turns."""

    def noisy(exact: FloatArray, law: NoiseLaw) -> tuple[int, ...]:
        drawn = chance.normal(0.0, noise_of(law).variance ** 0.5, exact.shape)
        return tuple(np.rint(exact + drawn).astype(int).tolist())

    unit = REACH // 16
    edges = np.array([0, *(unit * 2**power for power in range(DISTANCES - 1)), np.inf])
    question = {"measure": {"sum": ["delay", None], "grid": ["1", *bounds, 0, 160]}, "by": ["g"]}
    releases = []
    for number, groups in enumerate(days):
        reach, found = reaches[number % len(reaches)], []
        about = {"centre": 0, "reach": reach, "unit": unit}
        for name, values in groups.items():
            low, high = max(bounds[0], -reach), min(bounds[1], reach)
            table = MeasurementTerms("table", question, "minutes", group=(name,), noise=COUNTED)
            sums = replace(table, form="sums", stage=1, noise=SUMMED)
            count = replace(table, question={"measure": {"count": "records"}}, part="flights")
            far = np.histogram(np.abs(values), edges)[0].astype(float)
            total = np.array([np.clip(values, low, high).sum()])
            records = np.array([float(len(values))])
            found += [
                Measurement(table, numbers=noisy(far, COUNTED), given=about),
                Measurement(sums, numbers=noisy(total, SUMMED), given=about),
                Measurement(count, numbers=noisy(records, COUNTED)),
            ]
        batch = Batch("s", str(number), number * DAY, (number + 1) * DAY)
        releases.append(MeasuredRelease(str(number), "statistics", batch, 0, tuple(found)))
    return Measured("job", tuple(releases))


def holds(answer: Answer, truth: float) -> bool:
    return answer.lower <= truth <= answer.upper


def test_sums_and_means_of_heavy_tails_hold_over_days_weeks_and_months() -> None:
    """Intervals of the noise alone miss most months; half are below five times the width needed."""
    held: dict[int, list[bool]] = {1: [], 7: [], DAYS: []}
    of_noise, needed = [], []
    for seed in range(15):
        chance = np.random.default_rng(seed)
        days = [{"JFK": delays(chance)} for _ in range(DAYS)]
        measured = released(days, WIDE, chance)
        for length, found in held.items():
            places = range(DAYS - length, DAYS)
            records = np.concatenate([days[place]["JFK"] for place in places])
            whole = measured.total("minutes", places, ("JFK",))
            count = measured.total("flights", places, ("JFK",))
            found += [holds(whole, records.sum()), holds(mean(whole, count), records.mean())]
            if length == DAYS:
                noise = LEVEL * (noise_of(SUMMED).variance * DAYS) ** 0.5
                of_noise.append(abs(whole.value - records.sum()) <= noise)
                needed.append((whole.upper - whole.lower) / (2 * abs(whole.value - records.sum())))
    for length, found in held.items():
        assert np.mean(found) >= 0.9, (length, np.mean(found))
    assert np.mean(of_noise) < 0.3
    assert np.median(needed) < 5.0


def test_what_is_hidden_adds_up_over_days_and_groups() -> None:
    """Noise of four groups is twice that of one; what clips hide of them is four times as much."""
    chance = np.random.default_rng(1)
    days = [{name: delays(chance) for name in "abcd"} for _ in range(DAYS)]
    measured = released(days, WIDE, chance)
    alone = [measured.total("minutes", range(DAYS), (name,)) for name in "abcd"]
    whole, day = summed(alone), measured.total("minutes", [3], ("a",))
    assert whole.hidden == pytest.approx(np.sum([each.hidden for each in alone], axis=0))
    assert whole.doubt == pytest.approx(np.sum([each.doubt for each in alone], axis=0))
    above = whole.hidden[1] + np.hypot(whole.noise, whole.doubt[1])
    assert whole.upper - whole.value == pytest.approx(above)
    assert whole.noise == pytest.approx(np.linalg.norm([each.noise for each in alone]))
    assert alone[0].hidden[1] == pytest.approx(DAYS * day.hidden[1], rel=0.25)
    truth = sum(float(values.sum()) for groups in days for values in groups.values())
    assert holds(whole, truth)
    assert not whole.value - whole.noise <= truth <= whole.value + whole.noise


def test_nothing_is_hidden_of_values_within_the_reach_or_beyond_the_bounds() -> None:
    """Bounds within the reach leave the interval of the noise; at one side they leave that side."""
    chance = np.random.default_rng(2)
    days = [{"a": delays(chance, 100.0)} for _ in range(7)]
    below_alone = released(days, TIGHT, chance).total("minutes", range(7), ("a",))
    assert below_alone.hidden[1] == 0.0
    assert below_alone.hidden[0] > 0.0
    within = released(days, (-100, 100), chance).total("minutes", range(7), ("a",))
    assert within.hidden == (0.0, 0.0)
    assert within.noise == pytest.approx(LEVEL * (7 * noise_of(SUMMED).variance) ** 0.5)


def test_days_that_were_clipped_to_different_ranges_add_up() -> None:
    """Each day hides what lies beyond its own reach, so a month hides what both halves of it do."""
    chance = np.random.default_rng(3)
    days = [{"a": delays(chance)} for _ in range(DAYS)]
    measured = released(days, WIDE, chance, (60, 240))
    whole = measured.total("minutes", range(DAYS), ("a",))
    short, long = (measured.total("minutes", range(each, DAYS, 2), ("a",)) for each in (0, 1))
    assert short.hidden[1] > 2 * long.hidden[1] > 0
    assert whole.hidden == pytest.approx(np.add(short.hidden, long.hidden), rel=0.1)
    assert whole.noise == pytest.approx(np.hypot(short.noise, long.noise), rel=0.01)
    truth = float(sum(each["a"].sum() for each in days))
    assert holds(whole, truth)
    assert not whole.value - whole.noise <= truth <= whole.value + whole.noise


def test_a_measure_whose_question_changed_is_not_added_up() -> None:
    """Other bounds: the sums of both halves are of different values."""
    chance = np.random.default_rng(4)
    days = [{"a": delays(chance)} for _ in range(4)]
    one, other = (released(days, bounds, chance) for bounds in (WIDE, TIGHT))
    mixed = Measured("job", one.releases[:2] + other.releases[2:])
    with pytest.raises(ConfigurationError, match="2 different questions"):
        mixed.total("minutes", range(4), ("a",))
    assert mixed.total("minutes", range(2, 4), ("a",)).batches == 2


def test_days_add_up_to_their_week_and_groups_to_all() -> None:
    """Values to the last digit; intervals of more are shorter than theirs together."""
    chance = np.random.default_rng(6)
    days = [{name: delays(chance) for name in "ab"} for _ in range(7)]
    measured = released(days, WIDE, chance, (60, 240))
    for part in ("minutes", "flights"):
        groups = [measured.total(part, range(7), (name,)) for name in "ab"]
        each = [measured.total(part, [day], ("a",)) for day in range(7)]
        assert groups[0].value == pytest.approx(sum(one.value for one in each), abs=1e-6)
        assert summed(groups).value == pytest.approx(sum(one.value for one in groups), abs=1e-6)
        assert groups[0].noise < sum(one.noise for one in each)


def test_a_difference_of_sums_has_their_noise_and_what_clips_may_hide_of_either() -> None:
    """Of periods of thirty and of twenty-eight days, by day; its sides are not mixed up."""

    def answer(value: float, doubt: float, batches: int) -> Answer:
        up = 20.0 + math.hypot(100.0, doubt)
        return Answer(value, value - 105.0, value + up, batches, 100.0, (5.0, 20.0), (0.0, doubt))

    one, other = answer(3000.0, 900.0, 30), answer(2800.0, 840.0, 28)
    for by in (1.0, -1.0, 1 / 30, -1 / 28):
        assert math.isclose(one.scaled(by).noise, abs(by) * 100.0)
    found = summed([one.scaled(1 / 30), other.scaled(-1 / 28)])
    noise = math.hypot(100 / 30, 100 / 28)
    assert found.value == pytest.approx(0.0)
    assert found.upper == pytest.approx(20 / 30 + 5 / 28 + math.hypot(noise, 900 / 30))
    assert found.lower == pytest.approx(-5 / 30 - 20 / 28 - math.hypot(noise, 840 / 28))
