"""Damaged files: every page of a store flipped in many places, and the file cut everywhere.

A damaged store may be refused, in words of our own. It may be taken if it says what it said before
(the damage is in space that holds nothing). Anything else is accepted silently, and a violation.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from streamdp.errors import StreamdpError
from streamdp.store.sqlite import SqliteStore
from tests.crash.home import Facts, Home

PAGE, SINK_TABLE = 4096, "medians"
HEADER = 24
"""Bytes at the front of a page, and of the file, that are flipped one by one."""

_PULSE = ("epoch", "pid", "heartbeat_at", "stopped_at")
"""Columns of `instance` that every start writes."""


def flips(size: int, stride: int, masks: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Places and masks: every byte of each page's header, then one in `stride`, in turn."""
    number = 0
    for page in range(0, size, PAGE):
        inner = range(HEADER + page // PAGE % stride, PAGE, stride)
        for place in (*range(HEADER), *inner):
            number += 1
            if page + place < size:
                yield page + place, masks[number % len(masks)]


def flipped(whole: bytes, place: int, mask: int) -> bytes:
    """The file with one byte changed."""
    return whole[:place] + bytes([whole[place] ^ mask]) + whole[place + 1 :]


def say(store: Path) -> Facts:
    """All that a store says: its schema and rows, less signs of life and the sink's table.

    What a sink was given is a copy for its readers; the archive is what is vouched for.
    """
    with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as database:
        tables = "SELECT name, sql FROM sqlite_master WHERE tbl_name != ? AND sql NOT NULL"
        found: Facts = {"schema": [tuple(row) for row in database.execute(tables, [SINK_TABLE])]}
        for name, sql in found["schema"]:
            if name != SINK_TABLE and str(sql).lstrip().upper().startswith("CREATE TABLE"):
                columns = database.execute("SELECT name FROM pragma_table_info(?)", [name])
                kept = ", ".join(column for (column,) in columns if column not in _PULSE)
                rows = database.execute(f'SELECT {kept} FROM "{name}"')
                found[str(name)] = sorted(rows.fetchall(), key=repr)
    return found


def verdict(home: Home, damaged: dict[Path, bytes], truth: Facts) -> str | None:
    """Start a daemon on damaged files: None if it refuses or says what it said before.

    Args:
        home: Its store is overwritten.
        damaged: Content of the store's files; others beside it are removed.
        truth: What the undamaged store says.
    """
    for path in home.path.glob("store.db*"):
        path.unlink()
    for path, content in damaged.items():
        path.write_bytes(content)
    try:
        SqliteStore.open(home.store, home.clock.now()).close()
        said = say(home.store)
    except StreamdpError:
        return None
    except Exception as error:  # noqa: BLE001
        return f"a foreign {type(error).__name__}"
    wrong = [name for name in truth if said.get(name) != truth[name]]
    return f"accepted with another {', '.join(wrong)}" if wrong else None
