"""Reports on the store: read-only, beside a running daemon, ledger facts alone.

Of gates they have answers, from their slots on. Nothing here reads a threshold or a count of tests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

from streamdp.database import Database
from streamdp.privacy.amounts import UNBOUNDED
from streamdp.privacy.filters import Measure
from streamdp.store.ledger.chain import PURPOSES, spent_of
from streamdp.store.ledger.charges import ASSUMED, CHARGES, CUT_OFF
from streamdp.store.ledger.renames import NAMED, all_names
from streamdp.types import Json

_OWED = (
    "SELECT o.release_id, m.job, m.batch, o.sink, o.attempts, o.next_at, o.dead_at, o.reason"
    " FROM outbox o JOIN (SELECT id, job, batch FROM release UNION ALL"
    "   SELECT id, job, batch FROM notice WHERE noticed_at <= unixepoch() UNION ALL"
    "   SELECT id, job, period AS batch FROM rollup UNION ALL"
    "   SELECT id, about AS job, batch FROM alert) m"
    "   ON m.id = o.release_id"
    " WHERE o.delivered_at IS NULL"
)
"""Deliveries that sinks have not confirmed."""

_PURPOSES = ", ".join(f"('{each}')" for each in sorted(PURPOSES))
_NEWEST_OF_JOB = (
    "SELECT max((SELECT max(seq) FROM ledger WHERE job = n.value AND purpose = p.column1))"  # noqa: S608
    f" FROM (VALUES {_PURPOSES}) p, json_each(:names) n"
)
"""The last row of a job, by all its names: one step of an index for each name and purpose."""


@dataclass(frozen=True, slots=True)
class Heart:
    """Signs of life of the daemon.

    Args:
        pid: Of the process that works, or None after it has stopped on purpose.
        heartbeat_at: Last sign of life (POSIX seconds), or None if there never was one.
        stopped_at: When it last stopped on purpose.
    """

    pid: int | None
    heartbeat_at: int | None
    stopped_at: int | None


@dataclass(frozen=True, slots=True)
class JobReport:
    """One job as the ledger knows it; amounts in nano units of `measure`, that of its caps."""

    job: str
    releases: int
    last_batch: str | None
    last_released_at: int | None
    burnt: int
    spent_nano: int
    measure: Measure
    undelivered: int
    dead_letters: int
    paused: bool


@dataclass(frozen=True, slots=True)
class Spent:
    """Sum of a job's charges up to a row of the ledger, which is append-only.

    Args:
        seq: The row.
        epsilon_nano: Pure loss, `UNBOUNDED` if a charge had none.
        rho_nano: Zero-concentrated loss.
        names: Those that the job had then, as a list of JSON.
    """

    seq: int
    epsilon_nano: int
    rho_nano: int
    names: str = ""

    def amount(self, measure: Measure) -> int:
        """Spent amount in one measure."""
        return self.rho_nano if measure == "rho" else self.epsilon_nano


NOTHING = Spent(0, 0, 0)


@dataclass(frozen=True, slots=True)
class ScopeReport:
    """The budget of one scope; amounts in nano units of `measure`, that of its caps."""

    scope: str
    measure: Measure
    batch_cap_nano: int
    worst_batch_nano: int
    lifetime_cap_nano: int
    lifetime_spent_nano: int
    burnt_nano: int


def heart(database: Database) -> Heart:
    """The daemon's signs of life."""
    row = database.execute("SELECT pid, heartbeat_at, stopped_at FROM instance").fetchone()
    return Heart(*row)


def spent_of_job(database: Database, job: str, known: Spent = NOTHING) -> Spent:
    """Sum of all charges of a job under all its names; only rows behind known ones are read."""
    names = all_names(database, job)
    if known.names != names:
        known = NOTHING
    (head,) = database.execute("SELECT coalesce(max(seq), 0) FROM ledger").fetchone()
    epsilon, rho, without = database.execute(
        "SELECT coalesce(sum(epsilon_nano), 0), coalesce(sum(rho_nano), 0),"  # noqa: S608
        f" count(*) - count(epsilon_nano) FROM ledger WHERE job {NAMED}"
        " AND purpose IN ('reserve', 'open') AND seq > :known",
        {"names": names, "known": known.seq},
    ).fetchone()
    pure = min(known.epsilon_nano + epsilon + UNBOUNDED * without, UNBOUNDED)
    return Spent(head, pure, known.rho_nano + rho, names)


def measure_of_job(database: Database, job: str) -> Measure:
    """The measure of the caps that a job is charged under; `epsilon` before its first charge."""
    return _measure(database, all_names(database, job))


def _measure(database: Database, names: str) -> Measure:
    row = database.execute(
        "SELECT event ->> 'measure' FROM ledger WHERE +scope ="  # noqa: S608
        f" (SELECT scope FROM ledger WHERE seq = ({_NEWEST_OF_JOB}))"
        " AND purpose = 'cap' AND job IS NULL ORDER BY seq DESC LIMIT 1",
        {"names": names},
    ).fetchone()
    return "rho" if row is not None and row[0] == "rho" else "epsilon"


def job_report(database: Database, job: str, spent: Spent | None = None) -> JobReport:
    """Counts of one job under all its names, and its spending."""
    names = all_names(database, job)
    (row,) = database.query(
        f"WITH owed AS ({_OWED}), last AS (SELECT batch, released_at FROM release WHERE id ="  # noqa: S608
        " (SELECT release_id FROM ledger WHERE seq = (SELECT max((SELECT max(seq) FROM ledger"
        "  WHERE job = n.value AND purpose = 'commit')) FROM json_each(:names) n)))"
        " SELECT :job AS job,"
        f" (SELECT count(*) FROM release WHERE job {NAMED}) AS releases,"
        " (SELECT batch FROM last) AS last_batch,"
        " (SELECT released_at FROM last) AS last_released_at,"
        f" (SELECT count(*) FROM ledger WHERE job {NAMED} AND purpose = 'burn') AS burnt,"
        " undelivered, dead_letters,"
        " EXISTS (SELECT 1 FROM pause WHERE job = :job) AS paused"
        " FROM (SELECT count(*) AS undelivered, count(dead_at) AS dead_letters"
        f"  FROM owed WHERE job {NAMED})",
        {"job": job, "names": names},
    )
    spent = spent or spent_of_job(database, job)
    measure = _measure(database, names)
    about = {"paused": bool(row["paused"]), "measure": measure}
    return JobReport(**{**row, **about, "spent_nano": spent.amount(measure)})


def scope_reports(database: Database, scope: str | None = None) -> tuple[ScopeReport, ...]:
    """Every scope the ledger knows, or one: the caps in force and the batch that has lost most."""
    rows = database.query(
        "SELECT scope, coalesce(event ->> 'measure', 'epsilon') AS measure, batch_cap_nano,"
        " lifetime_cap_nano FROM ledger WHERE seq IN"
        " (SELECT max(seq) FROM ledger WHERE purpose = 'cap' AND scope = coalesce(?, scope)"
        " GROUP BY scope) ORDER BY scope",
        [scope],
    )
    return tuple(_scope_report(database, row) for row in rows)


def _scope_report(database: Database, row: dict[str, Json]) -> ScopeReport:
    scope, measure = row["scope"], row["measure"]
    (worst,) = database.execute(
        f"SELECT coalesce(max(total), 0) FROM (SELECT {_total(measure)} AS total"  # noqa: S608
        f" FROM {CHARGES} r WHERE r.scope = ? GROUP BY batch)",
        [scope],
    ).fetchone()
    (burnt,) = database.execute(
        f"SELECT {_total(measure)} FROM ledger s JOIN ledger r"  # noqa: S608
        " ON r.seq = s.reservation WHERE s.scope = ? AND s.purpose = 'burn'",
        [scope],
    ).fetchone()
    return ScopeReport(
        **row,
        worst_batch_nano=_unmarked(worst),
        lifetime_spent_nano=spent_of(database, scope, measure),
        burnt_nano=_unmarked(burnt),
    )


@dataclass(frozen=True, slots=True)
class Taken:
    """What a job or gate has taken of a budget, in nano units, and in how many charges."""

    nano: int
    charges: int


def taken_by(database: Database, scope: str, measure: Measure) -> dict[str, Taken]:
    """What each job and gate has taken of the budget of a scope; the most first."""
    rows = database.execute(
        f"SELECT job, {_total(measure)} AS total, count(*) FROM ledger r"  # noqa: S608
        " WHERE scope = ? AND purpose IN ('reserve', 'open') GROUP BY job ORDER BY total DESC, job",
        [scope],
    )
    return {job: Taken(_unmarked(total), charges) for job, total, charges in rows}


_NONE = 2**62
"""Stands for a sum without a bound within SQL."""


def _total(measure: Measure) -> str:
    """SQL of a sum over charges `r`; `_NONE` if one has no such loss."""
    if measure == "rho":
        return "coalesce(sum(r.rho_nano), 0)"
    known = "count(*) = count(r.epsilon_nano)"
    return f"CASE WHEN {known} THEN coalesce(sum(r.epsilon_nano), 0) ELSE {_NONE} END"


def _unmarked(total: int) -> int:
    return UNBOUNDED if total == _NONE else int(total)


def last_rho(database: Database, job: str) -> int:
    """Zero-concentrated loss of the last charge of a job, in nano units; 0 before the first."""
    row = database.execute(
        "SELECT rho_nano FROM ledger WHERE job = ? AND purpose IN ('reserve', 'open')"
        " ORDER BY seq DESC LIMIT 1",
        [job],
    ).fetchone()
    return int(row[0]) if row else 0


def owed_rows(database: Database) -> list[dict[str, Json]]:
    """Deliveries that sinks have not confirmed, oldest first; `dead_at` where they gave up."""
    return list(database.query(f"{_OWED} ORDER BY o.seq"))


def oldest_owed(database: Database) -> int | None:
    """When the oldest release was made that a sink still owes an answer; None if none does."""
    (oldest,) = database.execute(
        "SELECT min(r.released_at) FROM outbox o JOIN release r ON r.id = o.release_id"
        " WHERE o.delivered_at IS NULL AND o.dead_at IS NULL"
    ).fetchone()
    return None if oldest is None else int(oldest)


def refusing_sinks(database: Database, attempts: int, but: str) -> dict[str, str]:
    """Sinks that have refused one delivery so often, with the reason of the oldest.

    Args:
        database: The store.
        attempts: The least.
        but: Name of a sink that is left out.
    """
    rows = database.execute(
        "SELECT sink, reason FROM outbox WHERE delivered_at IS NULL AND dead_at IS NULL"
        " AND attempts >= ? AND sink != ? ORDER BY seq DESC",
        [attempts, but],
    )
    return dict(rows.fetchall())


class Arrivals(NamedTuple):
    """When a source had something new (POSIX time); None where it never had.

    Args:
        came_at: When its last batch arrived.
        last_end: End of its last window.
        declared_at: When its budget was opened.
    """

    came_at: int | None
    last_end: int | None
    declared_at: int | None


def arrivals(database: Database, source: str) -> Arrivals:
    """When a source had something new."""
    row = database.execute(
        "SELECT (SELECT max(arrived_at) FROM batch WHERE source = :name),"
        " (SELECT max(window_end) FROM batch WHERE source = :name),"
        " (SELECT min(at) FROM ledger WHERE +scope = :name AND purpose = 'cap' AND job IS NULL)",
        {"name": source},
    ).fetchone()
    return Arrivals(*row)


class Burnt(NamedTuple):
    """A charge without a release, in nano units; it may have no pure loss."""

    batch: str
    epsilon_nano: int | None
    rho_nano: int


def last_burnt(database: Database, job: str, since: int) -> Burnt | None:
    """The last burnt charge of a job, if it was burnt since a time or no release followed."""
    row = database.execute(
        "SELECT r.batch, r.epsilon_nano, r.rho_nano FROM ledger b"
        " JOIN ledger r ON r.seq = b.reservation"
        " WHERE b.job = :job AND b.purpose = 'burn' AND (b.at > :since OR b.reservation >"
        "   coalesce((SELECT reservation FROM ledger WHERE job = :job AND purpose = 'commit'"
        "     ORDER BY seq DESC LIMIT 1), 0))"
        " ORDER BY b.seq DESC LIMIT 1",
        {"job": job, "since": since},
    ).fetchone()
    return None if row is None else Burnt(*row)


def spending_jobs(database: Database) -> list[str]:
    """Jobs that have released or spent something, by name."""
    rows = database.execute(
        "SELECT job FROM release UNION SELECT job FROM ledger WHERE purpose = 'reserve'"
        " AND job NOT IN (?, ?) ORDER BY job",
        [ASSUMED, CUT_OFF],
    )
    return [name for (name,) in rows]


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
