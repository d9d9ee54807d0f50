"""Rows of releases by columns: had back to the last byte, in Python and in SQL alone."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streamdp.store.database import restrict
from streamdp.store.migrations import open_to_read
from streamdp.store.release_rows import EACH_ROW, FORM, packed, whole_rows
from streamdp.types import Json
from tests.worlds import World

numbers = st.floats(allow_nan=False) | st.integers() | st.decimals(-99, 99, places=3).map(float)
values = st.none() | st.booleans() | numbers | st.text() | st.lists(st.text(), max_size=2)


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    names = draw(st.lists(st.text(), min_size=1, max_size=4, unique=True))
    columns = [
        draw(st.just([draw(values)] * 3) | st.lists(values, min_size=3, max_size=3)) for _ in names
    ]
    rows = draw(st.integers(1, 3))
    return [dict(zip(names, row, strict=True)) for row in list(zip(*columns, strict=True))[:rows]]


def by_sql(columns: str, parts: str | None) -> list[str]:
    """Objects of the rows as views read them, on a connection that trusts no schema."""
    with closing(sqlite3.connect(":memory:")) as raw:
        raw.execute(FORM)
        raw.execute("CREATE TABLE release (form INTEGER, rows TEXT)")
        if parts is not None:
            raw.execute("INSERT INTO release_form VALUES (1, ?)", [parts])
        raw.execute("INSERT INTO release VALUES (?, ?)", [parts and 1, columns])
        raw.execute(f"CREATE VIEW v AS SELECT e.key AS row, e.value FROM release r, {EACH_ROW}")
        raw.execute("PRAGMA trusted_schema = OFF")
        return [text for (text,) in raw.execute("SELECT value FROM v ORDER BY row")]


@given(tables(), st.sampled_from(((",", ":"), (", ", ": "))))
def test_rows_are_had_back_to_the_last_byte(
    rows: list[dict[str, Json]], separators: tuple[str, str]
) -> None:
    """Whatever values they have: numbers of many digits, texts with quotes, lists, nothing."""
    text = json.dumps(rows, separators=separators)
    found = packed(text)
    assert found is not None
    parts, columns = found
    assert whole_rows(columns, parts) == text
    if "Infinity" not in text:  # SQLite reads JSON alone, which has no such number
        assert by_sql(columns, parts) == [json.dumps(row, separators=(",", ":")) for row in rows]


def test_rows_that_are_not_alike_are_stored_whole() -> None:
    """As are none, those without names, and texts that another writer wrote."""
    for text in (
        '[{"a":1},{"b":1}]',
        "[]",
        "[{}]",
        '[{"a" :1}]',
        '[{"a":1.50}]',
        '[{"a":1,"a":1}]',
    ):
        assert packed(text) is None
        assert whole_rows(text, None) == text
    assert by_sql('[{"a":1},{"b":1}]', None) == ['{"a":1}', '{"b":1}']


def test_a_form_is_stored_once(tmp_path: Path) -> None:
    """The view for people has the objects whole, on connections that trust no schema."""
    world = World(tmp_path)
    world.runner.round([world.job(), world.job("other")])
    assert world.count("SELECT count(*) FROM release_form") == 1
    assert world.count("SELECT count(*) FROM release WHERE form IS NULL") == 0
    longest = world.count("SELECT max(length(rows)) FROM release")
    database = open_to_read(world.path)
    restrict(database)
    whole = {release.id: list(release.rows) for release in world.sink.taken}
    for release_id, rows in whole.items():
        seen = database.execute(
            "SELECT columns, value FROM v_releases WHERE release_id = ? ORDER BY row", [release_id]
        ).fetchall()
        assert [json.loads(columns) for columns, _ in seen] == rows
        assert [value for _, value in seen] == [row["value"] for row in rows]
        assert longest < len(json.dumps(rows))
