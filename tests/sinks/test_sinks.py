"""Sinks: a release delivered twice is there once, and half a line is no line."""

import fcntl
import json
import os
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import duckdb
import pytest

from streamdp.errors import SinkError
from streamdp.sinks.files import FilesSink
from streamdp.sinks.jsonl import JsonLinesSink, StandardOutputSink
from streamdp.sinks.table import TableSink
from streamdp.sinks.warehouse import DuckDBTableSink
from streamdp.store.database import connect, one_writer
from streamdp.types import Release, Sink


def release(number: int) -> Release:
    rows = ({"quantile": 0.5, "value": float(number)}, {"quantile": 0.75, "value": 9.0})
    return Release(f"id{number}", "job", "s", f"b{number}", 0, 86_400, "quantiles", 10**8, 5, rows)


def test_table_upserts(tmp_path: Path) -> None:
    """Two deliveries of one release leave its two rows."""
    database = connect(tmp_path / "s.db")
    sink = TableSink("t", database, "deciles", one_writer)
    for number in (1, 2, 1):
        sink.deliver(release(number))
    rows = list(database.query("SELECT * FROM deciles ORDER BY release_id, row"))
    found = [(row["release_id"], row["value"]) for row in rows]
    assert found == [("id1", 1.0), ("id1", 9.0), ("id2", 2.0), ("id2", 9.0)]
    assert not database.conn.in_transaction


def test_tables_tell_the_newest_release_of_a_batch(tmp_path: Path) -> None:
    """A restored store releases a batch again: both are there, the later is current, in any order
    of delivery and however often; notices of the same batch and alerts are left alone."""
    first, other = release(1), release(2)
    again = replace(first, id="again", released_at=9)
    notice = replace(first, id="notice", kind="gate")
    alerts = [replace(first, id=f"alert {at}", kind="alert", released_at=at) for at in (8, 9)]
    database = connect(tmp_path / "s.db")
    for name, order in (("there", (first, other, again)), ("back", (again, other, first))):
        sinks: tuple[Sink, ...] = (
            TableSink("t", database, name, one_writer),
            DuckDBTableSink("w", tmp_path / "w.duckdb", name),
        )
        for sink in sinks:
            for each in (*order, notice, *alerts, *order):
                sink.deliver(each)
        asked = f"SELECT DISTINCT release_id, current FROM {name} ORDER BY release_id"
        with duckdb.connect(tmp_path / "w.duckdb") as connection:
            found = connection.execute(asked).fetchall()
        assert [who for who, is_it in found if not is_it] == ["id1"]
        assert len(found) == 6
        assert found == [(who, bool(is_it)) for who, is_it in database.execute(asked).fetchall()]


def test_table_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    """SQLite's refusal is a sink error and leaves no transaction open."""
    database = connect(tmp_path / "s.db")
    database.execute("CREATE VIEW deciles AS SELECT 1 AS release_id")
    with pytest.raises(SinkError):
        TableSink("t", database, "deciles", one_writer).deliver(release(1))
    assert not database.conn.in_transaction


def test_json_lines_once(tmp_path: Path) -> None:
    """Delivered twice by two processes: one line."""
    path = tmp_path / "out.jsonl"
    for _ in range(2):
        sink = JsonLinesSink("f", path)
        sink.deliver(release(1))
        sink.deliver(release(1))
    sink.deliver(release(2))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["release_id"] for line in lines] == ["id1", "id2"]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kept", [1, 20, -1])
def test_half_a_line_is_completed(tmp_path: Path, kept: int) -> None:
    """A crash in the middle of a line: the next process writes the other half."""
    path = tmp_path / "out.jsonl"
    JsonLinesSink("f", path).deliver(release(1))
    whole = path.read_bytes()
    JsonLinesSink("f", path).deliver(release(2))
    second = path.read_bytes()[len(whole) :]
    path.write_bytes(whole + second[:kept])
    JsonLinesSink("f", path).deliver(release(2))
    assert path.read_bytes() == whole + second


@pytest.mark.parametrize("end", ["important, no newline", '{"release_id": "other', "5\n", "[]\n"])
def test_foreign_words_are_left(tmp_path: Path, end: str) -> None:
    """A file that this sink has not written stays as it is, and the sink says so."""
    path = tmp_path / "notes.txt"
    path.write_text(end)
    with pytest.raises(SinkError, match="leaves this file as it is"):
        JsonLinesSink("f", path).deliver(release(1))
    assert path.read_text() == end


def test_a_known_release_before_half_a_line(tmp_path: Path) -> None:
    """A release that is there is not written again, though the line behind it has no end."""
    path = tmp_path / "out.jsonl"
    for number in (1, 2):
        JsonLinesSink("f", path).deliver(release(number))
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    sink = JsonLinesSink("f", path)
    for number in (1, 2, 1):
        sink.deliver(release(number))
    assert path.read_bytes() == whole


def test_published_files_have_the_mode_that_was_asked_for(tmp_path: Path) -> None:
    """Whatever the umask; who may read the files may enter the folders."""
    before = os.umask(0o077)
    try:
        JsonLinesSink("f", tmp_path / "out.jsonl", 0o644).deliver(release(1))
        FilesSink("c", tmp_path / "files", "csv", 0o640).deliver(release(1))
    finally:
        os.umask(before)
    assert (tmp_path / "out.jsonl").stat().st_mode & 0o777 == 0o644
    (file,) = tmp_path.glob("files/job/*.csv")
    assert file.stat().st_mode & 0o777 == 0o640
    assert {each.stat().st_mode & 0o077 for each in (file.parent, file.parents[1])} == {0o050}


def test_a_file_that_a_suspended_process_has_locked_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing waits for ever; the line is there once the lock is not."""
    monkeypatch.setattr("streamdp.sinks.jsonl.PATIENCE", 0.05)
    path = tmp_path / "out.jsonl"
    sink = JsonLinesSink("f", path)
    sink.deliver(release(1))
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(SinkError, match="another process has locked"):
            sink.deliver(release(2))
    sink.deliver(release(2))
    assert len(path.read_text().splitlines()) == 2


def test_a_failed_write_is_tried_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short write is an error; the next delivery repairs the file."""
    path = tmp_path / "out.jsonl"
    sink, write = JsonLinesSink("f", path), os.write
    monkeypatch.setattr(os, "write", lambda file, line: write(file, line[:10]))
    with pytest.raises(SinkError):
        sink.deliver(release(1))
    monkeypatch.undo()
    sink.deliver(release(1))
    assert len(path.read_text().splitlines()) == 1


def test_a_file_of_other_hands_is_not_touched(tmp_path: Path) -> None:
    """Lines that are no releases: refused, and the file stays as it was."""
    path = tmp_path / "out.jsonl"
    path.write_text("notes\n")
    with pytest.raises(SinkError):
        JsonLinesSink("f", path).deliver(release(1))
    assert path.read_text() == "notes\n"


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """One JSON object a line."""
    StandardOutputSink("o").deliver(release(1))
    assert json.loads(capsys.readouterr().out)["release_id"] == "id1"


def test_standard_output_that_is_full_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is still in a buffer is not delivered."""
    monkeypatch.setattr("sys.stdout", Mock(flush=Mock(side_effect=OSError)))
    with pytest.raises(SinkError, match="closed or full"):
        StandardOutputSink("o").deliver(release(1))
