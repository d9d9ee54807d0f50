"""Intervals of sums over periods hold what clips cut off: it adds up, and does not average out."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.answers import LEVEL
from streamdp.answers.clipped import NOTHING, Hidden, _spread
from streamdp.answers.job import Answer, Measured, mean, summed
from streamdp.errors import ConfigurationError
from streamdp.mechanisms.clip import DISTANCES, Clip
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
    for side in ("below", "above"):
        together = sum(getattr(each.hidden, side) for each in alone)
        assert getattr(whole.hidden, side) == pytest.approx(together)
    assert whole.upper - whole.value == pytest.approx(whole.hidden.widened(whole.noise)[1])
    assert whole.noise == pytest.approx(np.linalg.norm([each.noise for each in alone]))
    month, one = (float(each.hidden.above.mean()) for each in (alone[0], day))
    assert month == pytest.approx(DAYS * one, rel=0.25)
    truth = sum(float(values.sum()) for groups in days for values in groups.values())
    assert holds(whole, truth)
    assert not whole.value - whole.noise <= truth <= whole.value + whole.noise


def test_nothing_is_hidden_of_values_within_the_reach_or_beyond_the_bounds() -> None:
    """Bounds within the reach leave the interval of the noise; at one side they leave that side."""
    chance = np.random.default_rng(2)
    days = [{"a": delays(chance, 100.0)} for _ in range(7)]
    below_alone = released(days, TIGHT, chance).total("minutes", range(7), ("a",))
    assert not below_alone.hidden.above.any()
    assert below_alone.hidden.below.min() > 0.0
    assert below_alone.value - below_alone.lower > 1.2 * (below_alone.upper - below_alone.value)
    within = released(days, (-100, 100), chance).total("minutes", range(7), ("a",))
    assert not within.hidden.above.any()
    assert not within.hidden.below.any()
    assert within.noise == pytest.approx(LEVEL * (7 * noise_of(SUMMED).variance) ** 0.5)


def test_days_that_were_clipped_to_different_ranges_add_up() -> None:
    """Each day hides what lies beyond its own reach, so a month hides what both halves of it do."""
    chance = np.random.default_rng(3)
    days = [{"a": delays(chance)} for _ in range(DAYS)]
    measured = released(days, WIDE, chance, (60, 240))
    whole = measured.total("minutes", range(DAYS), ("a",))
    short, long = (measured.total("minutes", range(each, DAYS, 2), ("a",)) for each in (0, 1))
    assert short.hidden.above.mean() > 2 * long.hidden.above.mean() > 0
    both = short.hidden + long.hidden
    assert whole.hidden.above.mean() == pytest.approx(both.above.mean(), rel=0.1)
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
    above = np.linspace(0.0, 300.0, len(NOTHING.above))

    def answer(value: float, batches: int) -> Answer:
        hidden = Hidden(NOTHING.below, batches / 30 * above)
        return Answer.widened(value, 100.0, hidden, batches)

    one, other = answer(3000.0, 30), answer(2800.0, 28)
    assert one.upper - one.value > 2 * (one.value - one.lower)
    for by in (1.0, -1.0, 1 / 30, -1 / 28):
        assert math.isclose(one.scaled(by).noise, abs(by) * 100.0)
    turned = one.scaled(-1.0)
    assert (turned.lower, turned.upper) == (-one.upper, -one.lower)
    found = summed([one.scaled(1 / 30), other.scaled(-1 / 28)])
    assert found.value == pytest.approx(0.0)
    assert found.noise == pytest.approx(math.hypot(100 / 30, 100 / 28))
    assert found.hidden.above == pytest.approx(above / 30)
    assert found.hidden.below == pytest.approx(above / 30)
    assert found.upper == pytest.approx(-found.lower, rel=1e-3)


def averaged(
    days: list[dict[str, FloatArray]],
    chance: np.random.Generator,
    law: tuple[NoiseLaw, NoiseLaw] = (COUNTED, SUMMED),
    centres: tuple[int, ...] = (0, 40),
) -> Measured:
    """A mean of each group of each day: distances and clipped sums about centres in turns."""
    unit = REACH // 16
    edges = np.array([0, *(unit * 2**power for power in range(DISTANCES - 1)), np.inf])
    question = {"measure": {"mean": ["delay", None], "grid": ["1", *WIDE, 0, 160]}}
    releases = []
    for number, groups in enumerate(days):
        centre, found = centres[number % len(centres)], []
        about = {"centre": centre, "reach": REACH, "unit": unit}
        for name, values in groups.items():
            own = {**question, "by": ["g"]} if name else question
            table = MeasurementTerms(
                "table", own, "delay", group=(name,) if name else (), noise=law[0]
            )
            sums = replace(table, form="sums", stage=1, noise=law[1])
            far = np.histogram(np.abs(values - centre), edges)[0]
            total = np.clip(values - centre, -REACH, REACH).sum()
            drawn = [
                exact + chance.normal(0.0, noise_of(each).variance ** 0.5, np.shape(exact))
                for exact, each in ((far, law[0]), (total, law[1]))
            ]
            numbers = [tuple(np.rint(np.atleast_1d(each)).astype(int).tolist()) for each in drawn]
            found += [
                Measurement(table, numbers=numbers[0], given=about),
                Measurement(sums, numbers=numbers[1], given=about),
            ]
        batch = Batch("s", str(number), number * DAY, (number + 1) * DAY)
        releases.append(MeasuredRelease(str(number), "statistics", batch, 0, tuple(found)))
    return Measured("job", tuple(releases))


def test_a_mean_over_a_period_is_that_of_all_its_records() -> None:
    """Not of its days: days of few records count for few. Centres that change do not matter."""
    chance = np.random.default_rng(7)
    sizes = [100 if day % 7 > 4 else 1500 for day in range(DAYS)]
    days = [
        {"": np.rint(chance.normal(60.0 if size == 100 else 20.0, 12.0, size))} for size in sizes
    ]
    sure = (NoiseLaw("rho", Fraction(50)), NoiseLaw("rho", Fraction(50), REACH))
    measured = averaged(days, chance, sure)
    for length in (1, 7, DAYS):
        places = range(DAYS - length, DAYS)
        truth = float(np.concatenate([days[place][""] for place in places]).mean())
        found = measured.mean("delay", places)
        assert found.value == pytest.approx(truth, abs=0.05)
        assert holds(found, truth)
        assert found.batches == length
    assert found.value < 25.0 < np.mean([each[""].mean() for each in days])


def test_intervals_of_means_hold_over_days_weeks_and_months() -> None:
    """Half of what clips hide is beyond the noise of most months."""
    held: dict[int, list[bool]] = {1: [], 7: [], DAYS: []}
    of_noise = []
    for seed in range(15):
        chance = np.random.default_rng(100 + seed)
        days = [{"": delays(chance)} for _ in range(DAYS)]
        measured = averaged(days, chance)
        for length, found in held.items():
            places = range(DAYS - length, DAYS)
            truth = float(np.concatenate([days[place][""] for place in places]).mean())
            answer = measured.mean("delay", places)
            found.append(holds(answer, truth))
            if length == DAYS:
                of_noise.append(abs(answer.value - truth) <= answer.noise)
    for length, found in held.items():
        assert np.mean(found) >= 0.85, (length, np.mean(found))
    assert np.mean(of_noise) < 0.5


def test_the_mean_of_all_groups_is_that_of_their_records() -> None:
    """A group of few records moves it little; one that may have none has no mean."""
    chance = np.random.default_rng(9)
    days = [
        {"a": np.rint(chance.normal(20.0, 5.0, 2000)), "b": np.rint(chance.normal(90.0, 5.0, 3))}
        for _ in range(DAYS)
    ]
    measured = averaged(days, chance)
    whole = measured.mean("delay", range(DAYS))
    truth = np.concatenate([values for groups in days for values in groups.values()]).mean()
    assert holds(whole, float(truth))
    assert whole.value == pytest.approx(measured.mean("delay", range(DAYS), [("a",)]).value, abs=2)
    with pytest.raises(ConfigurationError, match="hardly any records"):
        measured.mean("delay", range(DAYS), [("b",)])
    with pytest.raises(ConfigurationError, match="is no mean"):
        released(days, WIDE, chance).mean("minutes", range(3), [("a",)])
    with pytest.raises(ConfigurationError, match="no count and no sum"):
        measured.total("delay", range(3), ("a",))


def test_records_with_a_value_are_at_most_those_that_are_counted() -> None:
    """A count tells how many there are where noise hides the sum of distances."""
    chance = np.random.default_rng(11)
    days = [{"": delays(chance)} for _ in range(DAYS)]
    loud = NoiseLaw("rho", Fraction(1, 2_000_000))
    measured = averaged(days, chance, (loud, SUMMED))
    counted = tuple(
        replace(
            each,
            measurements=(
                *each.measurements,
                Measurement(
                    MeasurementTerms(
                        "table", {"measure": {"count": "records"}}, "n", noise=COUNTED
                    ),
                    numbers=(RECORDS,),
                ),
            ),
        )
        for each in measured.releases
    )
    known = Measured("job", counted)._numbers("delay", range(DAYS), ())
    unknown = measured._numbers("delay", range(DAYS), ())
    assert known.each.sum() == pytest.approx(DAYS * RECORDS, rel=0.5)
    assert known.each.sum() <= DAYS * RECORDS * 1.01
    assert known.of_all**0.5 < 0.3 * DAYS * RECORDS
    assert unknown.of_all > 2 * known.of_all


@pytest.mark.parametrize(("guess", "least", "most"), [(2.0, 8.0, 20.0), (50.0, 8.0, 20.0)])
def test_near_distances_refute_a_guess_that_is_too_narrow_or_too_wide(
    guess: float, least: float, most: float
) -> None:
    """Of a normal law of spread 12; what noise leaves open the guess decides."""
    ends = [2.0**power for power in range(DISTANCES)]
    upto = np.array([math.erf(end / (12.0 * math.sqrt(2.0))) for end in ends])
    near = tuple((1000.0 * np.diff(upto, prepend=0.0)).tolist())
    sure = Clip(0, 24, 1, guess, near, 100.0)
    assert least < _spread(sure) < most
    assert _spread(replace(sure, spread=1e8)) == pytest.approx(guess)
