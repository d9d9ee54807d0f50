"""Terminals show numbers as exact as their intervals are, aligned, and what is constant once."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.cli.output import Amount, print_rows
from streamdp.cli.releases import _across
from streamdp.reports.releases.told import told_rows
from streamdp.text import Figure
from streamdp.types import Column, Json, Row

COLUMNS = (
    Column("carrier", "text", "label"),
    Column("measure", "text", "label"),
    Column("value", "number", "value", unit="minutes"),
    Column("lower", "number", "lower", about="value", level=0.95),
    Column("upper", "number", "upper", about="value", level=0.95),
    Column("nonnegative", "number", "estimate", about="value"),
    Column("records", "number", "batch", unit="records"),
    Column("flag", "text", "flag"),
)
Show = Callable[..., str]


def number(text: Json) -> float:
    return float(str(text).replace(",", ""))


@settings(deadline=None)
@given(
    value=st.floats(-1e9, 1e9),
    width=st.floats(1e-6, 1e9),
    share=st.floats(0, 1),
)
def test_a_value_and_its_interval_are_off_by_a_twentieth_of_its_width(
    value: float, width: float, share: float
) -> None:
    """At most: two digits of the width are shown, or all that there are."""
    ends = (value - share * width, value + (1 - share) * width)
    row: Row = {"carrier": "UA", "value": value, "lower": ends[0], "upper": ends[1]}
    _, (told,) = told_rows([row], COLUMNS)
    low, high = str(told["value 95 %"]).split(" to ")
    shown = [number(told["value (minutes)"]), number(low), number(high)]
    room = (ends[1] - ends[0]) / 20 * (1 + 1e-6) + 1e-9 * abs(value)
    if value.is_integer():
        assert shown[0] == pytest.approx(value, abs=max(room, 0))
    else:
        assert all(
            abs(one - other) <= room for one, other in zip(shown, (value, *ends), strict=True)
        )


def test_rows_that_measure_the_same_have_the_same_digits() -> None:
    """And no more than were drawn; what all rows say stands above; empty columns go."""
    drawn = [
        ("UA", "share", 0.51234, 0.4, 0.6),
        ("UA", "flights", 1161, 1149.2, 1173.3),
        ("B6", "share", 0.5, 0.41, 0.59),
        ("B6", "flights", -3, -15.2, 9.1),
    ]
    rows: list[Row] = []
    for each, measure, value, low, high in drawn:
        row: Row = {"carrier": each, "measure": measure, "value": value, "lower": low}
        rows.append({**row, "upper": high, "nonnegative": max(value, 0), "records": 962.4})
    common, told = told_rows(rows, COLUMNS)
    assert common == {"records": "962.4"}
    assert [list(row.values()) for row in told] == [
        ["UA", "share", "0.51", "0.40 to 0.60", "0.51"],
        ["UA", "flights", "1,161", "1,149 to 1,173", "1,161"],
        ["B6", "share", "0.50", "0.41 to 0.59", "0.50"],
        ["B6", "flights", "-3", "-15 to 9", "0"],
    ]
    assert list(told[0]) == ["carrier", "measure", "value (minutes)", "value 95 %", "nonnegative"]


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Show:
    """What a terminal of 120 columns shows, without its colours."""
    monkeypatch.setenv("COLUMNS", "120")

    def draw(*arguments: object, **named: object) -> str:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        print_rows(*arguments, **named)  # type: ignore[arg-type]
        return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)

    return draw


def test_figures_stand_at_the_right_and_constant_columns_above(show: Show) -> None:
    """Amounts too; a column that differs stays, and one row keeps all of its columns."""
    rows: list[dict[str, Json]] = [
        {"job": "a", "epsilon": 0.1, "spent": Amount.of(36 * 10**9), "n": Figure("1,161")},
        {"job": "b", "epsilon": 0.1, "spent": Amount.of(5 * 10**8), "n": Figure("9")},
    ]
    lines = show(rows, "table", title="jobs", once=("epsilon", "job")).splitlines()
    assert lines[0].split() == ["jobs", "epsilon:", "0.1"]
    body = [line.rstrip() for line in lines if line.strip().startswith(("a ", "b "))]
    assert [line.split() for line in body] == [["a", "36", "1,161"], ["b", "0.5", "9"]]
    assert len({len(line) for line in body}) == 1
    assert "epsilon" in show(rows[:1], "table", title="jobs", once=("epsilon",)).splitlines()[2]


def test_long_lines_lie_across(show: Show) -> None:
    """A row for each value, a column for each batch; prices that differ stay a row."""
    lines: list[dict[str, Json]] = [
        {"batch": "d1", "epsilon": 0.5, "UA": Figure("1")},
        {"batch": "d2", "epsilon": 0.5, "UA": Figure("2")},
    ]
    assert _across(lines) == [{"epsilon: 0.5": "UA", "d1": "1", "d2": "2"}]
    lines[1]["epsilon"] = 0.25
    assert [row[""] for row in _across(lines)] == ["epsilon", "UA"]
