"""Tables and errors on terminals: narrow ones, and those that want no colour."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from streamdp.cli.output import print_rows
from streamdp.types import Json

Draw = Callable[[list[dict[str, Json]], int], list[str]]

ROW: dict[str, Json] = {
    "job": "air_time",
    "state": "active",
    "since": None,
    "last_batch": "2026-11-06",
    "released_at": "2026-11-22T22:37:30Z",
    "releases": 6,
}


@pytest.fixture
def drawn(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Draw:
    """Rows as a terminal of a width shows them."""

    def draw(rows: list[dict[str, Json]], width: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        print_rows(rows, "table")
        return capsys.readouterr().out.splitlines()

    return draw


def test_a_narrow_terminal_breaks_no_word(drawn: Draw) -> None:
    """A table where its words fit, else a value a line, without those that are empty."""
    table = drawn([ROW], 80)
    assert any({"air_time", "2026-11-22", "22:37:30Z"} <= set(line.split()) for line in table)
    assert drawn([ROW], 40) == [
        "job          air_time",
        "state        active",
        "last batch   2026-11-06",
        "released at  2026-11-22 22:37:30Z",
        "releases     6",
        "",
    ]
    assert drawn([ROW], 56) == drawn([ROW], 40), "lines between columns take room"
    assert drawn([ROW] * 21, 40) == drawn([ROW], 40) * 21, "a long list"


@pytest.mark.parametrize(("plain", "coloured"), [("", True), ("1", False)])
def test_an_error_has_a_colour_unless_none_is_wanted(plain: str, coloured: bool) -> None:
    """By the environment's word, on a terminal."""
    ours, theirs = os.openpty()
    words = "from streamdp.cli.streams import print_error; print_error('store', 'gone')"
    subprocess.run(
        [sys.executable, "-c", words],
        stderr=theirs,
        check=True,
        env=os.environ | {"NO_COLOR": plain},
    )
    os.close(theirs)
    told = os.read(ours, 1000)
    os.close(ours)
    assert b"error (store): " in told
    assert (b"\x1b[31m" in told) == coloured


@pytest.mark.parametrize("width", range(70, 130, 3))
def test_a_table_of_many_columns_breaks_no_word(drawn: Draw, width: int) -> None:
    """Columns are not narrowed alike: one of dates keeps its width beside one of sentences."""
    row: dict[str, Json] = {
        "scope": "flights",
        "worst_batch": 0.1,
        "lifetime_cap": 60,
        "fits_next": 0.3,
        "batches_left": 235,
        "until": "2014-08-23",
        "protects": "each flight (add or remove one)",
        "last": "2013-12-31",
    }
    words = {word for name, cell in row.items() for word in [*name.split("_"), *str(cell).split()]}
    lines = [re.sub(r"\x1b\[\d*m", "", line) for line in drawn([row], width)]
    assert words <= {word for line in lines for word in line.split()}
    assert all(len(line) <= width for line in lines)
