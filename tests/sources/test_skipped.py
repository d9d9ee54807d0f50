"""What a pattern finds and is not read is told: by doctor, and once in the log of a process."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from streamdp import wiring
from streamdp.config import load
from streamdp.daemon.rounds import Rounds
from streamdp.files import skipped
from streamdp.sources.files import FileSource, PartitionSource
from streamdp.sources.windows import DAY, WindowSource
from streamdp.store.sqlite import SqliteStore
from tests.sources.test_one_budget import FILES, WINDOWS, configured, part, ran, released
from tests.worlds import EventLog, HandClock, ReplayedEntropy

NOBODY = 65534

ODD = {
    "circle.parquet": "a link in a circle",
    "device.parquet": "a device",
    "lost.parquet": "a link to nothing",
    "pipe.parquet": "a pipe",
    "socket.parquet": "a socket",
}


def odd_inputs(folder: Path) -> None:
    """One name of each kind, beside a file and a link out of the folder."""
    part(folder / "a.parquet")
    part(folder.parent / "elsewhere" / "b.parquet", 60)
    os.symlink("../elsewhere/b.parquet", folder / "b.parquet")
    os.mkfifo(folder / "pipe.parquet")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket.parquet"))
    os.symlink("/dev/null", folder / "device.parquet")
    os.symlink("nowhere", folder / "lost.parquet")
    os.symlink("circle.parquet", folder / "circle.parquet")
    (folder / "folder.parquet").mkdir()


@contextmanager
def nobody() -> Iterator[None]:
    """Another user while the block lasts, where this one may read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def findings(folder: Path) -> dict[str, dict[str, Any]]:
    """What doctor finds, by check."""
    rows = [json.loads(line) for line in ran(folder, "doctor", "--json").splitlines()]
    return {row["check"]: row for row in rows}


def told(folder: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    return [line for line in lines if line["event"] == "input.skipped"]


def test_files_that_are_none_are_told_by_name(open_folder: Path) -> None:
    """By doctor as a warning, in the log with the reason; a link out of the folder is read."""
    odd_inputs(open_folder / "in")
    configured(open_folder, s=f"path: 'in/*.parquet', {FILES}")
    found = findings(open_folder)["inputs of s"]
    assert found["state"] == "warning"
    assert found["finding"] == "skipped: " + ", ".join(f"{a}: {why}" for a, why in ODD.items())
    ran(open_folder)
    assert released(open_folder) == [("of_s", "a.parquet"), ("of_s", "b.parquet")]
    assert {line["batch"]: line["reason"] for line in told(open_folder)} == ODD
    assert len(told(open_folder)) == len(ODD)


def test_doctor_lists_a_few_names_and_counts_the_others(open_folder: Path) -> None:
    """Of eight links to nothing five are named."""
    part(open_folder / "in" / "a.parquet")
    for number in range(8):
        os.symlink(f"nowhere{number}", open_folder / "in" / f"l{number}.parquet")
    configured(open_folder, s=f"path: 'in/*.parquet', {FILES}")
    finding = findings(open_folder)["inputs of s"]["finding"]
    assert finding.count("a link to nothing") == 5
    assert finding.endswith("l4.parquet: a link to nothing, and 3 more")


def test_nothing_is_told_where_all_is_read(open_folder: Path) -> None:
    """Files, links to them and folders are no warning."""
    part(open_folder / "in" / "a.parquet")
    os.symlink("a.parquet", open_folder / "in" / "b.parquet")
    (open_folder / "in" / "c.parquet").mkdir()
    configured(open_folder, s=f"path: 'in/*.parquet', {FILES}")
    assert "inputs of s" not in findings(open_folder)
    ran(open_folder)
    assert told(open_folder) == []


def test_in_windows_no_file_is_named(open_folder: Path) -> None:
    """The reasons, how many in doctor; the name of a file may be that of a person."""
    odd_inputs(open_folder / "in")
    os.mkfifo(open_folder / "in" / "second.parquet")
    configured(open_folder, s=f"path: 'in/*.parquet', {WINDOWS}")
    finding = findings(open_folder)["inputs of s"]["finding"]
    assert "a pipe (2)" in finding
    assert ".parquet" not in finding
    ran(open_folder)
    assert released(open_folder) == [("of_s", "2024-01-01")]
    assert sorted(line["reason"] for line in told(open_folder)) == sorted(ODD.values())
    assert ".parquet" not in str(told(open_folder))


def test_each_is_logged_once_in_a_process(open_folder: Path) -> None:
    """Rounds go by without a line; an input that comes later has its own; so has a restart."""
    odd_inputs(open_folder / "in")
    path = configured(open_folder, s=f"path: 'in/*.parquet', {FILES}")
    configuration, clock = load(path), HandClock()
    store = SqliteStore.open(open_folder / "s.db", clock.now())
    wiring.declare(configuration, store, clock.now(), EventLog())
    tasks = wiring.jobs(configuration)

    def daemon() -> tuple[Rounds, EventLog]:
        started = Rounds(store, ReplayedEntropy(), clock, lambda: False, lambda: None, lambda: None)
        started.adopt(tasks)
        return started, EventLog()

    def wake(rounds: Rounds, log: EventLog) -> int:
        rounds.wake(tasks.values(), tasks, log)
        until = time.monotonic() + 600
        while rounds.busy() and time.monotonic() < until:
            time.sleep(0.01)
        assert rounds.left() == set()
        return log.names().count("input.skipped")

    rounds, log = daemon()
    assert [wake(rounds, log) for _ in range(3)] == [5, 5, 5]
    os.mkfifo(open_folder / "in" / "late.parquet")
    assert [wake(rounds, log) for _ in range(2)] == [6, 6]
    assert wake(*daemon()) == 6
    store.close()


@pytest.mark.parametrize("pattern", ["in/*/*.csv", "in/**/*.csv", "in/closed/d.csv"])
def test_folders_without_permission_are_told(open_folder: Path, pattern: str) -> None:
    """Expansion passes over them: they were as if they were empty."""
    for name in ("open", "closed"):
        (open_folder / "in" / name).mkdir(parents=True)
        (open_folder / "in" / name / "d.csv").write_text("x\n1\n")
        (open_folder / "in" / name / "d.csv").chmod(0o644)
        (open_folder / "in" / name).chmod(0o755)
    (open_folder / "in").chmod(0o755)
    source = FileSource("s", f"{open_folder}/{pattern}")
    with nobody():
        assert source.skipped() == ()
    (open_folder / "in" / "closed").chmod(0)
    with nobody():
        found = {each.batch: each.why for each in source.skipped()}
    (open_folder / "in" / "closed").chmod(0o755)
    key = "." if pattern.endswith("/d.csv") else "closed"
    assert found == {key: "a folder that this user may not read"}


def test_files_without_permission_are_told_by_doctor(open_folder: Path) -> None:
    """Where they are batches, those are refused and logged already; doctor needs no run."""
    (open_folder / "d.csv").write_text("x\n1\n")
    (open_folder / "d.csv").chmod(0)
    with nobody():
        found = skipped(f"{open_folder}/*.csv")
    assert found == [(f"{open_folder}/d.csv", "a file that this user may not read")]


def test_of_partitions_the_value_is_told(tmp_path: Path) -> None:
    """Names of parts are not."""
    part(tmp_path / "day=1" / "a.parquet")
    os.mkfifo(tmp_path / "day=1" / "alice.parquet")
    (found,) = PartitionSource("s", f"{tmp_path}/day=*/*.parquet", "day", "x{key}").skipped()
    assert (found.batch, found.why) == ("1", "a pipe")


def test_one_thing_with_two_names_is_told_once(tmp_path: Path) -> None:
    """A link to a pipe is that pipe; a linked folder holds nothing of its own."""
    os.mkfifo(tmp_path / "a.csv")
    os.symlink("a.csv", tmp_path / "b.csv")
    os.symlink(".", tmp_path / "again")
    assert skipped(f"{tmp_path}/**/*.csv") == [(f"{tmp_path}/a.csv", "a pipe")]


def test_a_table_skips_nothing() -> None:
    """A source without files has no names."""
    assert WindowSource("s", 0, DAY).skipped() == ()
