"""A store of many releases, written at once: what a page has to read after years."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from streamdp.privacy.filters import Caps
from streamdp.store.release_rows import form_id, packed
from streamdp.store.sqlite import SqliteStore

HOUR, START, NANO = 3600, 1_356_998_400, 1_000_000
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)

LEDGER = (
    "seq, at, purpose, scope, job, batch, reservation, epsilon_nano, rho_nano, event, release_id,"
    " batch_cap_nano, lifetime_cap_nano, lifetime_spent_nano, hash, lifetime_rho_nano"
)

RELEASE = (
    "id, job, source, batch, kind, epsilon_nano, reservation, released_at, version, form, rows"
)

CONFIG = """
store: {{path: store.db}}
privacy: {{unit: flight, caps: {{batch: 0.3, lifetime: {lifetime}}}}}
sources:
  flights: {{path: "{path}", batches: {{column: at, every: 1h, start: 2013-01-01}}}}
releases:
  air_time:
    {{kind: quantiles, source: flights, column: air_time, quantiles: [0.1, 0.25, 0.5, 0.75, 0.9],
     resolution: 1, bounds: [0, 1000], epsilon: 0.001, schedule: {{every: 1h}}}}
log: {{path: streamdp.log}}
"""


def furnish(folder: Path, releases: int) -> Path:
    """Make a folder with a configuration and a store of so many releases; returns the former."""
    (folder / "at.csv").write_text("at,air_time\n")
    text = CONFIG.format(path=folder / "at.csv", lifetime=releases // 500 + 60)
    (folder / "config.yaml").write_text(text)
    caps = Caps(300 * NANO, (releases // 500 + 60) * 1000 * NANO)
    store = SqliteStore.open(folder / "store.db", START)
    store.declare({"flights": (caps, {"unit": "flight", "neighbours": "add-remove"})}, START)
    database = store.database
    database.execute("BEGIN IMMEDIATE")
    many = database.conn.executemany
    many(
        "INSERT INTO batch (source, key, window_start, window_end, arrived_at) VALUES (?,?,?,?,?)",
        (
            (b["source"], b["key"], b["start"], b["start"] + HOUR, b["start"])
            for b in _batches(releases)
        ),
    )
    many(f"INSERT INTO ledger ({LEDGER}) VALUES ({','.join('?' * 16)})", _ledger(releases, caps))
    for row in _releases(releases):
        parts, columns = packed(row[-1]) or ("", "")
        values = [*row[:-1], form_id(database, parts), columns]
        database.execute(f"INSERT INTO release ({RELEASE}) VALUES ({','.join('?' * 11)})", values)
    database.execute("COMMIT")
    store.close()
    return folder / "config.yaml"


def _batches(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        start = START + number * HOUR
        key = datetime.fromtimestamp(start, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        yield {"source": "flights", "key": key, "start": start, "number": number}


def _ledger(count: int, caps: Caps) -> Iterator[tuple[Any, ...]]:
    event = json.dumps({"type": "bounded-range", "epsilon": "1/1000"})
    for batch in _batches(count):
        number, at = batch["number"], batch["start"] + HOUR
        seq, spent = 2 + 2 * number, (number + 1) * NANO
        about = (caps.batch_nano, caps.lifetime_nano, spent)
        yield (
            seq,
            at,
            "reserve",
            "flights",
            "air_time",
            batch["key"],
            None,
            NANO,
            NANO // 80,
            event,
            None,
            *about,
            bytes.fromhex(_digest(seq)),
            0,
        )
        yield (
            seq + 1,
            at,
            "commit",
            "flights",
            "air_time",
            batch["key"],
            seq,
            0,
            0,
            "{}",
            _digest(number)[:32],
            *about,
            bytes.fromhex(_digest(seq + 1)),
            0,
        )


def _releases(count: int) -> Iterator[tuple[Any, ...]]:
    level = 40 + np.abs(110 + np.cumsum(np.random.default_rng(1).normal(0, 0.5, count)))
    for batch in _batches(count):
        number = batch["number"]
        rows = [
            {
                "quantile": q,
                "value": round(float(level[number] * (0.5 + q))),
                "lower": 99.0,
                "upper": 101.0,
                "smoothed": float(level[number] * (0.5 + q)),
                "smoothed_lower": float(level[number] * (0.45 + q)),
                "smoothed_upper": float(level[number] * (0.55 + q)),
            }
            for q in QUANTILES
        ]
        yield (
            _digest(number)[:32],
            "air_time",
            "flights",
            batch["key"],
            "quantiles",
            NANO,
            2 + 2 * number,
            batch["start"] + HOUR,
            "0.1.0",
            json.dumps(rows, separators=(",", ":")),
        )


def _digest(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()
