"""Reports on gates: answers from their slots on, and ledger facts.

Nothing here reads a threshold or a count of tests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from streamdp.database import Database
from streamdp.privacy.filters import Measure
from streamdp.store.reading.reports import measure_of_job, spent_of_job


@dataclass(frozen=True, slots=True)
class GateReport:
    """One gate; amounts in nano units of `measure`, that of its caps."""

    gate: str
    armed: bool
    waits: bool
    runs: int
    asked: int
    accepted: int
    last_batch: str | None
    last_accepted: str | None
    spent_nano: int
    measure: Measure


@dataclass(frozen=True, slots=True)
class Standing:
    """A release that rejections let stand.

    Args:
        release_id: Which.
        of: Key of its batch.
        first: Key of the first batch it stands for besides its own.
        last: Of the last.
        batches: How many they are.
    """

    release_id: str
    of: str
    first: str
    last: str
    batches: int


def gate_report(database: Database, gate: str, now: int) -> GateReport:
    """Counts of answers and ledger rows of one gate."""
    (row,) = database.query(
        "WITH seen AS (SELECT * FROM gate_answer WHERE gate = :gate AND slot <= :now)"
        " SELECT :gate AS gate,"
        " EXISTS (SELECT 1 FROM gate_run WHERE gate = :gate AND ended IS NULL) AS armed,"
        " EXISTS (SELECT 1 FROM gate_run WHERE gate = :gate AND waits) AS waits,"
        " (SELECT count(*) FROM gate_run WHERE gate = :gate) AS runs,"
        " (SELECT count(*) FROM seen) AS asked,"
        " (SELECT count(*) FROM seen WHERE accepted) AS accepted,"
        " (SELECT batch FROM seen ORDER BY slot DESC, batch DESC LIMIT 1) AS last_batch,"
        " (SELECT batch FROM seen WHERE accepted ORDER BY slot DESC, batch DESC LIMIT 1)"
        "   AS last_accepted",
        {"gate": gate, "now": now},
    )
    measure = measure_of_job(database, gate)
    about = {"armed": bool(row["armed"]), "waits": bool(row["waits"]), "measure": measure}
    spent = spent_of_job(database, gate).amount(measure)
    return GateReport(**{**row, **about, "spent_nano": spent})


def answered_batches(database: Database, gate: str) -> frozenset[str]:
    """Keys of the batches a gate has answered for."""
    rows = database.execute("SELECT batch FROM gate_answer WHERE gate = ?", [gate])
    return frozenset(batch for (batch,) in rows)


def refused_batches(database: Database, gate: str) -> frozenset[str]:
    """Batches that a gate has not let pass: they are never released."""
    rows = database.execute("SELECT batch FROM gate_answer WHERE gate = ? AND NOT accepted", [gate])
    return frozenset(key for (key,) in rows)


def waits_since(database: Database, gate: str) -> int | None:
    """When the run of a gate was closed that waits for `streamdp rearm`; None if none does."""
    (since,) = database.execute(
        "SELECT max(l.at) FROM gate_run g CROSS JOIN ledger l ON l.reservation = g.run"
        " AND l.purpose = 'close' WHERE g.gate = ? AND g.waits",
        [gate],
    ).fetchone()
    return None if since is None else int(since)


def standing(database: Database, job: str, now: int) -> dict[str, Standing]:
    """Releases of a job that stood for later batches too, by id."""
    rows = database.execute(
        "SELECT rows, batch FROM notice WHERE job = ? AND kind = 'standing' AND noticed_at <= ?"
        " ORDER BY noticed_at, batch",
        [job, now],
    )
    found: dict[str, Standing] = {}
    for text, batch in rows:
        (row,) = json.loads(text)
        release, of = row["standing_release"], row["standing_batch"]
        before = found.get(release, Standing(release, of, batch, batch, 0))
        found[release] = Standing(release, of, before.first, batch, before.batches + 1)
    return found


def standing_for(database: Database, job: str, batch: str, now: int) -> str | None:
    """Key of the batch whose release stands for another batch, if one does."""
    row = database.execute(
        "SELECT rows FROM notice WHERE job = ? AND kind = 'standing' AND batch = ?"
        " AND noticed_at <= ?",
        [job, batch, now],
    ).fetchone()
    return json.loads(row[0])[0]["standing_batch"] if row else None
