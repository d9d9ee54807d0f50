"""A store opened in a notebook: tables of what may be seen, and no way to write."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

import streamdp
from streamdp.errors import StoreError, StreamdpError
from streamdp.library.table import table_of, table_of_releases
from streamdp.store.database import PRIVATE
from streamdp.types import Column, Release
from tests.worlds import World

HOSTILE = '"><script>alert(1)</script>\x1b[31m'


def world(folder: Path) -> World:
    found = World(folder)
    found.runner.round([found.job()])
    return found


def test_jobs_releases_and_budget_are_tables(tmp_path: Path) -> None:
    """Releases in order of their batches, times with a zone, amounts as the ledger has them."""
    made = world(tmp_path)
    with streamdp.open(made.path) as store:
        (job,) = store.jobs().rows
        releases, last = store.releases("job").rows, store.releases("job", last=1).rows
        caps = {row["cap"]: row for row in store.budget()}
    assert (job["job"], job["source"], job["releases"], job["spent"]) == ("job", "s", 5, 0.5)
    assert job["kind"] == "quantiles"
    assert len(releases) == 15
    assert last == releases[-3:]
    assert [row["batch"] for row in releases] == sorted(row["batch"] for row in releases)
    assert releases[0]["window_start"].utcoffset().total_seconds() == 0
    assert {row["epsilon_exact"] for row in releases} == {"0.1"}
    assert caps["lifetime"]["spent"] == 0.5
    assert caps["batch"]["spent"] == 0.1
    assert caps["lifetime"]["left"] == caps["lifetime"]["allowed"] - 0.5


def test_a_job_that_only_burnt_is_there_without_releases(tmp_path: Path) -> None:
    """Its kind is not known; its charges are."""
    made = World(tmp_path, days=1)
    made.backend.fails = True
    made.runner.round([made.job()])
    with streamdp.open(made.path) as store:
        (job,) = store.jobs()
        assert len(store.releases("job")) == 0
    assert (job["kind"], job["releases"], job["burnt"], job["spent"]) == (None, 0, 1, 0.1)


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM release", "UPDATE ledger SET epsilon_nano = 0", "CREATE TABLE t (x)", "VACUUM"]
    + ["ATTACH 'other.db' AS other", "PRAGMA query_only = OFF"]
    + [f"SELECT {column} FROM {table}" for table, column in sorted(PRIVATE)],
)
def test_it_neither_writes_nor_reads_what_is_private(tmp_path: Path, statement: str) -> None:
    """SQLite refuses the statement, whoever puts it."""
    made = world(tmp_path)
    before = made.path.read_bytes()
    with streamdp.open(made.path) as store, pytest.raises(sqlite3.DatabaseError):
        store._database.execute(statement)
    assert made.path.read_bytes() == before


def test_a_reader_does_not_keep_the_writer_waiting(tmp_path: Path) -> None:
    """Nothing is held between two looks; what was written meanwhile is seen by the next."""
    made = World(tmp_path, days=2)
    with streamdp.open(made.path) as store:
        assert len(store.jobs()) == 0
        made.runner.round([made.job()])
        assert len(store.releases("job")) == 6


def test_what_is_not_there_is_refused_with_what_is(tmp_path: Path) -> None:
    """A file, a job."""
    with pytest.raises(StoreError, match="there is no store"):
        streamdp.open(tmp_path / "none.db")
    with streamdp.open(world(tmp_path).path) as store:
        with pytest.raises(StreamdpError, match="did you mean 'job'"):
            store.releases("jab")
        store._database.close()
        with pytest.raises(StreamdpError):
            store.jobs()


def release(rows: list[dict[str, float | str | int | None]], *columns: Column) -> Release:
    return Release("id", "j", "s", "b", None, None, "k", 10**8, 0, tuple(rows), columns)


def test_a_column_that_has_changed_its_type_is_one_column() -> None:
    """Whole numbers are numbers; what was a number and is a text now is text."""
    first = release(
        [{"n": 1, "row_of": 2}],
        Column("n", "integer", "value"),
        Column("row_of", "number", "label"),
    )
    then = release(
        [{"n": 0.5, "row_of": "two", "more": 1}],
        Column("n", "number", "value"),
        Column("row_of", "text", "label"),
        Column("more", "integer", "estimate"),
    )
    table = table_of_releases([first, then])
    rows = [(row["n"], row["row_of"], row["more"]) for row in table]
    assert rows == [(1, "2", None), (0.5, "two", 1)]
    assert table.to_arrow().column("n").to_pylist() == [1.0, 0.5]


def test_a_page_obeys_no_name_and_no_text() -> None:
    """Names and values are escaped; a table of many rows shows the first."""
    table = table_of([{HOSTILE: HOSTILE}] * 100, {HOSTILE: "text"})
    page = table._repr_html_()
    assert "<script" not in page
    assert "\x1b" not in page + repr(table)
    assert page.count("<tr>") == 61
    assert "100 rows" in page


def test_pandas_polars_and_arrow_have_the_same_values() -> None:
    """Whole numbers with gaps stay whole; times have a zone."""
    at = datetime.fromisoformat("2024-01-01T00:00:00+00:00")
    table = table_of(
        [{"x": 1, "y": 0.5, "t": at}, {"x": None, "y": None, "t": None}],
        {"x": "integer", "y": "number", "t": "time"},
    )
    assert table.to_arrow().to_pylist() == list(table.rows)
    assert table.to_polars().to_dicts() == list(table.rows)
    frame = table.to_pandas()
    assert str(frame["x"].dtype) == "Int64"
    assert frame["t"][0] == at


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setattr("streamdp.library.table.find_spec", lambda name: None)
    with pytest.raises(StreamdpError, match="pip install pandas"):
        table_of([], {}).to_pandas()


def test_a_plot_shows_itself_and_can_be_kept(tmp_path: Path) -> None:
    """An SVG file that stands alone; a job without releases has none."""
    made = world(tmp_path)
    with streamdp.open(made.path) as store:
        chart = store.plot("job")
        chart.save(tmp_path / "chart.svg")
        with pytest.raises(StreamdpError, match="no releases of 'other'"):
            store.plot("other")
    text = (tmp_path / "chart.svg").read_text()
    assert ElementTree.fromstring(text).tag.endswith("svg")  # noqa: S314
    assert text in chart._repr_html_()
    assert text.count('class="name') == 3
