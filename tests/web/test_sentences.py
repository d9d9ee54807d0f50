"""Changes in words: the direction is that of the interval, and chances are never rounded up."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdp.answers.periods import Period
from streamdp.reports.holds import Hold
from streamdp.reports.releases.changes import Comparison, Moved, PeriodRow
from streamdp.reports.releases.headline import GROUPS, headline
from streamdp.reports.releases.sentences import amounts, chances, change_said, in_100
from streamdp.reports.releases.series import picture
from streamdp.reports.releases.summary import SENTENCES, _changed
from streamdp.types import Column, Release, Row
from streamdp.web.report import _chance

NUMBERS = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))


@given(NUMBERS, st.floats(0.01, 1e5), st.floats(0.01, 1e5))
def test_a_change_has_the_direction_of_its_interval(at: float, below: float, above: float) -> None:
    """One whose interval reaches both directions has none; the mirror image says the opposite."""
    lower, upper = at - below, at + above
    text = change_said("x", at, lower, upper, "minutes")
    mirrored = change_said("x", -at, -upper, -lower, "minutes")
    if lower <= 0 <= upper:
        assert "no clear change" in text
        assert "rose" not in text + mirrored
        assert "fell" not in text + mirrored
    else:
        assert (" rose by " in text) == (at > 0)
        assert text.replace("rose", "fell") == mirrored.replace("rose", "fell")
        assert "-" not in text


@given(NUMBERS, st.floats(0.01, 1e5), st.floats(0, 1))
def test_a_change_that_is_not_clear_has_no_direction(at: float, half: float, differ: float) -> None:
    """Below 95 in 100 that the records changed, whatever the interval; above by the interval."""
    ends = at - half, at + half
    text = change_said("x", at, *ends, differ=differ)
    clear = differ >= 0.95 and not ends[0] <= 0 <= ends[1]
    assert ("no clear change" in text) == (not clear)
    if clear:
        assert text == change_said("x", at, *ends)
    elif not ends[0] <= 0 <= ends[1]:
        assert text.endswith("more" if at > 0 else "less")


@given(NUMBERS, st.floats(0.01, 1e5), st.floats(0, 1), st.floats(0, 1))
def test_a_change_says_its_chances_once(at: float, half: float, differ: float, rose: float) -> None:
    """With a direction as `chances` does; without, by which reason there is none."""
    ends = at - half, at + half
    text = change_said("x", at, *ends, differ=differ, rose=rose)
    assert text.startswith(change_said("x", at, *ends, differ=differ))
    assert text.count("chance that the records changed") == 1
    assert "sure" not in text
    if "no clear change" in text:
        assert ("95 are needed" in text) == (differ < 0.95)
        assert "beyond" not in text
    else:
        assert text.endswith(chances(differ, rose))


def test_one_record_is_no_records() -> None:
    """Of either end; several, and what is not known to be of several, stay as they are."""
    assert change_said("x", 8.0, -1.0, 17.0, "records") == (
        "x: no clear change, 1 record less to 17 more"
    )
    assert change_said("x", 3.0, 1.0, 5.0, "minutes").startswith("x rose by 3 minutes")
    assert change_said("x", 1.0, 0.4, 1.6, "celsius").endswith("(0.4 to 1.6)")


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_chance_is_rounded_down_and_never_certain(differ: float, rose: float) -> None:
    """From 1 to 99 in 100; the direction is the likelier one."""
    text = chances(differ, rose)
    assert text.startswith(f"chance that the records changed {in_100(differ)} in 100")
    likelier = max(rose, 1 - rose)
    way = ("rose", "fell")[rose < 0.5]
    assert text.endswith(f"they {way} beyond usual ups and downs {in_100(likelier)} in 100")
    for chance in (differ, likelier):
        assert 1 <= in_100(chance) <= 99
        assert in_100(chance) <= max(100 * chance, 1)


@pytest.mark.parametrize("ends", [(0.0, 4.0), (-4.0, 0.0), (-4.0, 4.0)])
def test_an_interval_that_touches_zero_is_no_change(ends: tuple[float, float]) -> None:
    """An end at 0 is in the interval."""
    assert "no clear change" in change_said("x", sum(ends) / 2, *ends)


@given(NUMBERS, st.floats(0.01, 1e5), st.integers(0, 3))
def test_numbers_beside_each_other_have_digits_alike(at: float, half: float, most: int) -> None:
    """No more than asked for, unless an interval without 0 would reach it by rounding."""
    said = amounts(at, at - half, at + half, most)
    digits = {len(each.partition(".")[2]) for each in said}
    assert len(digits) == 1
    assert digits.pop() <= most or 0 < min(abs(at - half), abs(at + half)) < 10.0**-most
    own = amounts(at, at - half, at + half)
    if at > half and float(own[1].replace(",", "")):
        assert float(said[1].replace(",", ""))


@pytest.mark.parametrize("ends", [(9.0, -2.0), (-math.inf, 3.0), (0.0, math.nan)])
def test_an_odd_interval_is_still_written(ends: tuple[float, float]) -> None:
    """A page shows what a store holds: ends the other way round, or none that are finite."""
    assert all(amounts(3.0, *ends))


def test_a_table_says_which_way_is_not_clear_where_records_surely_changed() -> None:
    """Beside 97 in 100 stands no "no clear change": its range has 0 in it, and that is all."""
    assert _chance(Moved((5.0, 0.0, 10.0), 0.97, 0.8)).interval == "which way is not clear"
    assert _chance(Moved((5.0, -3.0, 10.0), 0.6, 0.8)).interval == "no clear change"
    assert _chance(Moved((5.0, 1.0, 10.0), 0.97, 0.8)).interval == "beyond usual: 80"


@pytest.mark.parametrize("others", [0, 1, GROUPS, GROUPS + 3])
def test_a_headline_says_its_value_of_other_groups(others: int) -> None:
    """The first few by name, and how many more; nothing of a job without groups."""
    names = [f"g{at:02}" for at in range(others + 1)]
    rows: list[Row] = [
        {"group": name, "quantile": quantile, "value": 10.0 * at + quantile}
        for at, name in enumerate(names)
        for quantile in (0.1, 0.5)
    ]
    columns = (Column("group", "text", "label"), Column("quantile", "number", "label"))
    release = Release("r", "job", "s", "b", 0, 86_400, "quantiles", 1, 0, tuple(rows), columns)
    whole = picture([release], (*columns, Column("value", "number", "value")))
    said, alone = headline(whole, None, ("group",)), headline(whole)
    assert said is not None
    assert alone is not None
    assert (said.name, alone.groups) == ("g00 · median", "")
    shown = [part.split(" ")[0] for part in said.groups.split(" and ")[0].split(", ") if part]
    assert shown == names[1 : GROUPS + 1]
    assert said.groups.endswith(f" and {others - GROUPS} more") == (others > GROUPS)


@pytest.mark.parametrize("many", [SENTENCES, SENTENCES + 1, SENTENCES + 5])
def test_sentences_on_changes_say_how_many_they_leave_out(many: int) -> None:
    """Rows of measures beside the headline; one sentence each, then the number of the others."""
    rows = tuple(
        PeriodRow({"measure": f"m{at}"}, f"m{at}", (9, 8, 10), "", "sum", Moved((3, 2, 4)))
        for at in range(many)
    )
    period = Period("2013-W52", 1_387_756_800, 1_388_361_600)
    compared = Comparison("week", period, period, 7, 7, rows, headline=rows[0])
    said = list(_changed(compared, "", ()))
    assert len([each for each in said if " rose by " in each]) == min(many, SENTENCES)
    left = [each for each in said if each.startswith("And ")]
    assert left == ([f"And {many - SENTENCES} more in the table below."] * (many > SENTENCES))
    assert compared.dates == "23 to 29 December 2013"


def test_what_holds_a_job_is_told_to_the_minute() -> None:
    """Since when and until when, where either is known."""
    assert Hold("paused", "resume it").told == "paused: resume it"
    assert Hold("waits", "batch cap", 61, "later").told == (
        "waits: batch cap, since 1970-01-01 00:01 UTC, until later"
    )
