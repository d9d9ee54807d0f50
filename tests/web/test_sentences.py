"""Changes in words: the direction is that of the interval, and sureness is never rounded up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdp.reports.releases.sentences import change_said, in_100, sureness

NUMBERS = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))


@given(NUMBERS, st.floats(0.01, 1e5), st.floats(0.01, 1e5))
def test_a_change_has_the_direction_of_its_interval(at: float, below: float, above: float) -> None:
    """One whose interval reaches both directions has none; the mirror image says the opposite."""
    lower, upper = at - below, at + above
    text = change_said("x", at, lower, upper, "minutes")
    mirrored = change_said("x", -at, -upper, -lower, "minutes")
    if lower <= 0 <= upper:
        assert "no sure change" in text
        assert "rose" not in text + mirrored
        assert "fell" not in text + mirrored
    else:
        assert (" rose by " in text) == (at > 0)
        assert text.replace("rose", "fell") == mirrored.replace("rose", "fell")
        assert "-" not in text


@given(NUMBERS, st.floats(0.01, 1e5), st.floats(0, 1))
def test_a_change_that_is_not_sure_has_no_direction(at: float, half: float, differ: float) -> None:
    """Below 95 in 100 that the records differ, whatever the interval; above by the interval."""
    ends = at - half, at + half
    text = change_said("x", at, *ends, differ=differ)
    sure = differ >= 0.95 and not ends[0] <= 0 <= ends[1]
    assert ("no sure change" in text) == (not sure)
    if sure:
        assert text == change_said("x", at, *ends)
    elif not ends[0] <= 0 <= ends[1]:
        assert text.endswith("more" if at > 0 else "less")


@given(NUMBERS, st.floats(0.01, 1e5), st.floats(0, 1), st.floats(0, 1))
def test_a_change_says_how_sure_it_is_once(
    at: float, half: float, differ: float, rose: float
) -> None:
    """With a direction as `sureness` does; without, by which reason there is none."""
    ends = at - half, at + half
    text = change_said("x", at, *ends, differ=differ, rose=rose)
    assert text.startswith(change_said("x", at, *ends, differ=differ))
    assert text.count("as sure as") == 1
    if "no sure change" in text:
        assert ("95 are needed" in text) == (differ < 0.95)
        assert "process" not in text
    else:
        assert text.endswith(sureness(differ, rose))


def test_one_record_is_no_records() -> None:
    """Of either end; several, and what is not known to be of several, stay as they are."""
    assert change_said("x", 8.0, -1.0, 17.0, "records") == (
        "x: no sure change, 1 record less to 17 more"
    )
    assert change_said("x", 3.0, 1.0, 5.0, "minutes").startswith("x rose by 3 minutes")
    assert change_said("x", 1.0, 0.4, 1.6, "celsius").endswith("(0.4 to 1.6)")


@given(st.floats(0, 1), st.floats(0, 1))
def test_sureness_is_rounded_down_and_never_certain(differ: float, rose: float) -> None:
    """From 1 to 99 in 100; the direction is the likelier one."""
    text = sureness(differ, rose)
    assert text.startswith(f"as sure as {in_100(differ)} in 100 that the records differ")
    likelier = max(rose, 1 - rose)
    assert text.endswith(
        f"{in_100(likelier)} in 100 that their process " + ("rose", "fell")[rose < 0.5]
    )
    for chance in (differ, likelier):
        assert 1 <= in_100(chance) <= 99
        assert in_100(chance) <= max(100 * chance, 1)


@pytest.mark.parametrize("ends", [(0.0, 4.0), (-4.0, 0.0), (-4.0, 4.0)])
def test_an_interval_that_touches_zero_is_no_change(ends: tuple[float, float]) -> None:
    """An end at 0 is in the interval."""
    assert "no sure change" in change_said("x", sum(ends) / 2, *ends)
