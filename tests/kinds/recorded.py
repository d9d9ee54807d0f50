"""Five recorded streams: what a daemon with replayed chance publishes, charges and learns.

`python -m tests.kinds.recorded` writes them anew, after a change that was meant to change them.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
from scipy.special import ndtr

from streamdp.config import load
from streamdp.daemon.runtime import runtime
from streamdp.database import Database
from streamdp.store.database import connect_to_read
from streamdp.store.ledger.chain import Events
from streamdp.store.release_rows import ROWS_OF_RELEASE
from streamdp.types import Json
from tests.worlds import EventLog, HandClock, ReplayedEntropy

FOLDER = Path(__file__).parent / "recordings"
DIGITS = FOLDER / "last_digits.txt"
DAYS, ROWS = 6, 120
LONGEST = 4000

HEAD = """
store: {path: store.db, anchor: anchor}
privacy:
  unit: UNIT
  neighbours: NEIGHBOURS
  caps: {batch: 4, lifetime: 100}
sources:
  trips:
    path: trips.csv
    types: {at: timestamp, x: number}
    batches: {column: at, every: 1d, start: 2023-11-15, end: 2023-11-21}
"""

EXPERTS = """
releases:
  minutes:
    {kind: quantiles, source: trips, column: x, quantiles: deciles, resolution: 1, bounds: [0, 400],
     guess: {location: 120, scale: 60}, expected_rows: 120, epsilon: 0.5, where: x <> 7,
     prior: {learner: mixture, features: [weekday, trend]}}
"""

GROUPS = """
releases:
  minutes:
    {kind: quantiles, source: trips, column: x, by: city, groups: [a, b, z], quantiles: quartiles,
     resolution: 1/2, guess: {location: 120, scale: 60}, expected_rows: 40, epsilon: 1,
     prior: {learner: mixture, public: {path: public.csv, column: minutes}}}
  bought:
    {kind: quantiles, source: trips, column: {sql: CAST(x AS INT) + 1}, by: [city], groups: [a, b],
     quantiles: [0.1, 0.5], resolution: 1, bounds: [0, 400], epsilon: 1,
     prior: {learner: online-gradient, private_gradient: 1/3}}
"""

SUBSTITUTE = """
releases:
  joint:
    {kind: quantiles, source: trips, column: x, quantiles: deciles, resolution: 1, bounds: [0, 400],
     epsilon: 0.3, mechanism: {branching: 4, node: joint, shapes: true}, prior: {learner: none}}
  auto:
    {kind: quantiles, source: trips, column: x, quantiles: deciles, resolution: 1, bounds: [0, 400],
     expected_rows: 120, epsilon: 0.3, prior: {learner: none}}
"""

UNITS = """
releases:
  last:
    {kind: quantiles, source: trips, column: x, quantiles: median, resolution: 1, bounds: [0, 400],
     epsilon: 0.7, prior: {learner: last-release}}
  gradient:
    {kind: quantiles, source: trips, column: x, quantiles: quartiles, resolution: 1,
     guess: {location: 100, scale: 50}, epsilon: 0.6, prior: {learner: online-gradient}}
"""

GATES = """
releases:
  minutes:
    {kind: quantiles, source: trips, column: x, quantiles: quartiles, resolution: 1,
     bounds: [0, 400], epsilon: 0.5, prior: {learner: last-release},
     gate: {test: {kind: drift, absolute: 40}, epsilon: 1, horizon: 4}}
gates:
  late:
    {source: trips, column: x, resolution: 1, bounds: [0, 400], epsilon: 1, horizon: 3, sinks: out,
     test: {kind: threshold, quantile: 0.9, above: 300}}
sinks: {out: {kind: jsonl, path: out.jsonl}}
"""

PERSON = "{name: person, column: who, rows: 3}"

STREAMS = {
    "experts": (EXPERTS, "trip", "add-remove"),
    "groups": (GROUPS, PERSON, "add-remove"),
    "substitute": (SUBSTITUTE, "trip", "substitute"),
    "units": (UNITS, PERSON, "add-remove"),
    "gates": (GATES, "trip", "add-remove"),
}
"""Releases, unit and neighbours by name."""

TABLES = {
    "release": f"job, batch, kind, epsilon_nano, {ROWS_OF_RELEASE}",
    "ledger": "job, batch, purpose, epsilon_nano, rho_nano, event",
    "learner": "job, version, signature, state",
    "gate_answer": "gate, batch, accepted",
    "v_measurements": "job, batch, number, form, part, groups, stage, question, noise, share,"
    " unit, cells, numbers, given",
}


def record(name: str, folder: Path) -> dict[str, Json]:
    """All rows that one stream leaves in a store."""
    text, unit, neighbours = STREAMS[name]
    head = HEAD.replace("UNIT", unit).replace("NEIGHBOURS", neighbours)
    (folder / "config.yaml").write_text(head + text)
    (folder / "trips.csv").write_text("\n".join(["at,x,city,who", *_lines(DAYS * ROWS)]))
    public = [f"{30 + (7 * i) % 280}" for i in range(300)]
    (folder / "public.csv").write_text("\n".join(["minutes", *public]))
    configuration = load(folder / "config.yaml")
    with runtime(configuration, ReplayedEntropy(name), HandClock(), EventLog()) as running:
        outcomes = running.runner.round(running.jobs.values())
    assert not outcomes.errors, outcomes.errors
    with closing(connect_to_read(folder / "store.db")) as database:
        return {table: _rows(database, table) for table in TABLES}


def _rows(database: Database, table: str) -> Json:
    """Rows of a table, of the ledger without notes and caps, which name this store's folder."""
    columns = TABLES[table]
    own = columns.partition(",")[0]
    joined = {"learner": "learner JOIN learned_state USING (reservation)", "release": "release r"}
    read = joined.get(table, table)
    found = database.execute(f"SELECT {columns} FROM {read} WHERE {own} NOT NULL ORDER BY 1, 2, 3")
    events = Events(database)
    whole = [
        [events.whole(each) if isinstance(each, str) else each for each in row] for row in found
    ]
    return [list(map(_plain, row)) for row in whole]


def _lines(count: int) -> list[str]:
    """Records of six days: a spread that wanders, three cities, forty people."""
    lines = []
    for i in range(count):
        day, at = divmod(i, ROWS)
        x = (37 * i + 11 * (i // 7)) % (200 + 40 * (day % 3)) + 30 * day
        hour, minute = divmod(at, 60)
        city = "abz"[i % 3] if i % 11 else "other"
        lines.append(f"2023-11-{15 + day}T{hour:02}:{minute:02}:00,{x},{city},p{(i * i) % 40}")
    return lines


def _plain(value: Json) -> Json:
    """A stored document as it is; a long one, or one of packed numbers, by its digest."""
    if isinstance(value, str) and (len(value) > LONGEST or '"packed": ' in value):
        return hashlib.sha256(value.encode()).hexdigest()
    try:
        return json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError:
        return value


def last_digits() -> str:
    """Digest of sums, roots, powers and packed bytes: alike where all libraries work alike."""
    draws = np.random.default_rng(1).standard_normal((96, 96))
    square = draws @ draws.T + np.eye(96)
    root = np.linalg.cholesky(square)
    parts = (square, root, np.linalg.solve(square, draws), np.exp(draws), np.log(np.abs(draws)))
    more = (ndtr(draws), np.einsum("ij,jk->ik", draws, root), draws.sum(axis=0))
    content = b"".join(part.tobytes() for part in (*parts, *more))
    return hashlib.sha256(content + zlib.compress(content)).hexdigest()


def main() -> None:
    """Write all recordings anew."""
    FOLDER.mkdir(exist_ok=True)
    DIGITS.write_text(last_digits() + "\n")
    for name in STREAMS:
        with tempfile.TemporaryDirectory() as folder:
            text = json.dumps(record(name, Path(folder)), sort_keys=True)
        (FOLDER / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
