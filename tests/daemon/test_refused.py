"""A configuration that is refused leaves the store as it was."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamdp.config import load
from streamdp.daemon.runtime import runtime
from streamdp.errors import ConfigurationError
from tests.store.test_files import OLD
from tests.store.test_upgrade import schema_of, written
from tests.worlds import START, EventLog, HandClock, ReplayedEntropy

CONFIG = """
store: {path: store.db}
privacy: {unit: person, caps: {batch: 0.3, lifetime: 10}}
sources: {s: {path: in.csv, batches: {column: at, every: 1d, start: 2023-11-15}}}
releases:
  job: {kind: quantiles, source: s, column: x, quantiles: [0.5], resolution: 1, bounds: [0, 100],
        epsilon: 0.1}
"""
GROWING = CONFIG.replace("start: 2023-11-15", "start: 2023-11-15, growing: true").replace(
    "batch: 0.3, lifetime: 10", "batch: 3, lifetime: 3"
)


def work(folder: Path, text: str) -> None:
    (folder / "config.yaml").write_text(text)
    (folder / "in.csv").write_text("at,x\n")
    configuration = load(folder / "config.yaml")
    with runtime(configuration, ReplayedEntropy(), HandClock(START + 864_000), EventLog()):
        pass


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("unit: person", "unit: trip"),
        ("lifetime: 10", "lifetime: 11"),
        (
            "releases:",
            "sinks: {h: {kind: webhook, url: 'http://[::1]/', secret: {file: no}}}\nreleases:",
        ),
    ],
)
def test_an_older_store_is_not_migrated(tmp_path: Path, was: str, becomes: str) -> None:
    """Refused by the ledger, or for a secret that is not there; accepted, it is migrated."""
    path = written(OLD, tmp_path)
    before = path.read_bytes()
    with pytest.raises(ConfigurationError):
        work(tmp_path, CONFIG.replace(was, becomes))
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("store.db.schema-*"))
    work(tmp_path, CONFIG)
    assert schema_of(path) > schema_of(next(tmp_path.glob("store.db.schema-*")))


def test_a_growing_source_is_not_cut_anew(tmp_path: Path) -> None:
    """Neither by another length or start of its windows, nor into windows that do not grow."""
    work(tmp_path, GROWING)
    for was, becomes in (("every: 1d", "every: 1h"), ("start: 2023-11-15", "start: 2023-11-14")):
        with pytest.raises(ConfigurationError, match="growth"):
            work(tmp_path, GROWING.replace(was, becomes))
    with pytest.raises(ConfigurationError, match="growth"):
        work(tmp_path, re.sub(", growing: true", "", GROWING))
    work(tmp_path, GROWING)


def test_a_growing_source_of_before_is_bound_at_its_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger that does not say how it grows learns it, and holds to it."""
    with monkeypatch.context() as patch:
        patch.setattr("streamdp.sources.section.SourceSection.growth", lambda section: {})
        work(tmp_path, GROWING)
    work(tmp_path, GROWING)
    with pytest.raises(ConfigurationError, match="growth"):
        work(tmp_path, GROWING.replace("every: 1d", "every: 1h"))


def test_a_store_that_was_not_made_to_its_end_is_made(tmp_path: Path) -> None:
    """A process that died while it made the store: a file with pages, and no table in it yet."""
    import sqlite3

    with sqlite3.connect(tmp_path / "store.db") as begun:
        begun.execute("PRAGMA journal_mode=WAL")
        begun.execute("CREATE TABLE migration (version INTEGER)")
        begun.execute("DROP TABLE migration")
    begun.close()
    work(tmp_path, CONFIG)
    work(tmp_path, CONFIG)
