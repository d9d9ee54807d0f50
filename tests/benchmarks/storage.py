"""Bytes of a store a release, and how long it takes to verify and to copy it.

python -m tests.benchmarks.storage [--quick] [--json] [--releases N]

The first releases are those of the demonstration; further ones repeat the last of them through the
store's own transactions, with its rows, event, measurements and state, on days of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from streamdp.config import load
from streamdp.daemon.runtime import SystemClock, runtime
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.store.backup import backup
from streamdp.store.database import connect_to_read
from streamdp.store.ledger.chain import Events
from streamdp.store.measurements import measurements_of
from streamdp.store.sqlite import SqliteStore
from streamdp.store.verified_open import verify
from streamdp.types import Batch, Charge, Learned
from tests.benchmarks.report import Row, main
from tests.crash.home import folder

COUNT = """releases:
  air_time: {kind: statistics, source: flights, measures: {n: count}, epsilon: 0.1, sinks: []}
"""
WANTED = {"deciles": 3000, "count": 1000}
DAY = 86_400


def _configured(place: Path, kind: str) -> Path:
    text = files("streamdp").joinpath("demo", "config.yaml").read_text(encoding="utf-8")
    text = text.replace("end: 2014-01-01", "end: 2013-01-31").replace(
        "lifetime: 60", "lifetime: 99999"
    )
    if kind == "count":
        text = text[: text.index("releases:")] + COUNT
    (place / "config.yaml").write_text(text)
    return place / "config.yaml"


def _repeat(store: SqliteStore, count: int) -> None:
    """Add so many releases that are like the newest, a day each."""
    last = store.last_release("air_time")
    learned = store.learned("air_time")
    assert last is not None
    assert last.window_start is not None
    assert learned is not None
    measured = measurements_of(store.database, "air_time", last.id).measurements
    row = store.database.execute(
        "SELECT event, epsilon_nano, rho_nano FROM ledger WHERE purpose = 'reserve'"
        " ORDER BY seq DESC"
    ).fetchone()
    charge = Charge(json.loads(Events(store.database).whole(row[0])), row[1], row[2])
    for number in range(1, count + 1):
        start = last.window_start + number * DAY
        batch = Batch(last.source, f"{number:010}", start, start + DAY)
        store.add_batches([(batch, None)], start + DAY)
        reservation = store.reserve(last.source, "air_time", batch, charge, start + DAY)
        release = replace(
            last, id=f"{number:024x}", batch=batch.key, window_start=start, window_end=start + DAY
        )
        after = Learned(learned.version + number, learned.signature, learned.state)
        store.commit(reservation, release, after, [], measured)


def _measured(kind: str, releases: int) -> Row:
    with folder() as place:
        configuration = load(_configured(place, kind))
        with runtime(
            configuration, OperatingSystemEntropy(), SystemClock(), lambda *_, **__: None
        ) as running:
            running.runner.round(list(running.jobs.values()))
        path, anchor = configuration.store.paths()
        store = SqliteStore.open(path, 0, anchor)
        _repeat(store, releases)
        store.close()
        with closing(sqlite3.connect(path)) as raw:
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        begun = time.process_time()
        with closing(connect_to_read(path)) as database:
            (stored,) = database.execute("SELECT count(*) FROM release").fetchone()
            verify(database)
        verified, begun = time.process_time() - begun, time.process_time()
        backup(path, place / "copy.db", lambda _: None)
        copied, size = time.process_time() - begun, os.path.getsize(path)
        return {
            "kind": kind,
            "releases": stored,
            "MB": round(size / 1e6, 2),
            "bytes a release": round(size / stored),
            "wanted": WANTED[kind],
            "anchor bytes a release": round(anchor.stat().st_size / stored),
            "verify s": round(verified, 2),
            "copy s": round(copied, 2),
        }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--releases", type=int, default=10_000)
    return parser


def rows(quick: bool) -> Iterator[Row]:
    """A row a kind."""
    known, _ = _parser().parse_known_args()
    for kind in WANTED:
        yield _measured(kind, 500 if quick else known.releases)


if __name__ == "__main__":
    main("Bytes of a store a release (processor seconds)", rows, parser=_parser())
