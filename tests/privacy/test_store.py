"""What a store keeps of records besides outputs of draws: nothing that its readers are shown."""

from __future__ import annotations

import hmac
import os
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.sources.files import FileSource, file_digest
from streamdp.store.database import PRIVATE
from tests.worlds import START, World, quantiles_kind

CHECKSUMS = {("batch", "seal"), ("arrival", "seal")}
"""Of rows with private columns."""

RECORDS = "".join(f"{x}\n" for x in range(40, 60))
KEY = bytes(range(32))
PAGES = (
    "streamdp/mechanisms/PRIVACY.md",
    "deploy/docs/reference/limits.md",
    "deploy/docs/how-to/restore.md",
)


def world_of(folder: Path, records: str, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world that has released the records above 9 of a file, with one key and chance for all."""
    monkeypatch.setattr(secrets, "token_bytes", lambda size: KEY[:size])
    monkeypatch.setattr(secrets, "token_hex", lambda size: KEY[:size].hex())
    file = folder.parent / "day.csv"
    file.write_text(f"x\n{records}")  # in place: the same file, of the same inode
    os.utime(file, (START, START))
    made = World(folder, make=True)
    backend = DuckDBBackend(str(file), "csv", types={"x": "number"})
    kind = replace(quantiles_kind(), where='"x" > 9')
    job = replace(
        made.job(kind=kind), source=FileSource("s", str(folder.parent / "*.csv")), backend=backend
    )
    outcomes = made.runner.round([job])
    assert (outcomes.released, outcomes.errors) == (1, [])
    return made


def columns_of(world: World) -> dict[tuple[str, str], list[Any]]:
    """All columns of all tables of its store."""
    database = world.store.database
    tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {
        (table, column): [row[column] for row in database.query(f"SELECT * FROM {table}")]
        for (table,) in tables
        for column in [name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]
    }


def test_files_that_a_question_does_not_tell_apart_leave_the_same_to_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One record more, which does not count: what differs is private, or a checksum of it."""
    worlds = [
        world_of(tmp_path / name, f"{RECORDS}{more}", monkeypatch)
        for name, more in (("one", ""), ("other", "7\n"))
    ]
    one, other = map(columns_of, worlds)
    differ = {name for name in one if one[name] != other[name]}
    assert {("batch", "digest"), ("arrival", "state")} <= differ
    assert differ <= PRIVATE | CHECKSUMS
    assert worlds[0].log.events == worlds[1].log.events
    assert worlds[0].sink.taken == worlds[1].sink.taken


def test_who_has_a_store_can_tell_whether_a_guess_of_a_whole_file_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the proof, the limits and the page on copies say."""
    columns = columns_of(world_of(tmp_path / "one", RECORDS, monkeypatch))
    guess = file_digest(str(tmp_path / "day.csv"))
    (key,), (kept,) = columns["instance", "digest_key"], columns["batch", "digest"]
    assert guess is not None
    assert hmac.digest(key, guess, "sha256") == kept
    for page in PAGES:
        text = (Path(__file__).parents[2] / page).read_text()
        assert "a guess of a whole file" in text
