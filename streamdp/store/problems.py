"""What needs an operator: problems of batches, jobs that are paused, and alerts.

A problem is kept until it is solved. An alert is owed to its sink by the outbox, like a release:
once when its condition begins, and once when it is over. What is open is not told again.

A reason is in public words: it names files, columns and types, never a value. Functions that write
run inside a transaction of their caller.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from streamdp.database import Database
from streamdp.errors import StreamdpError
from streamdp.store import outbox, row_checksums
from streamdp.store.database import transaction

_COLUMNS = "about, batch, code, reason, since"


@dataclass(frozen=True, slots=True)
class BatchProblem:
    """Why a batch is not released, or what happened to it afterwards.

    Args:
        about: Job or gate that cannot go on; `source NAME` if no job of a source can.
        batch: Key; empty for all batches.
        code: As errors have it.
        reason: What is wrong, and what to do.
        since: POSIX time.
    """

    about: str
    batch: str
    code: str
    reason: str
    since: int

    @property
    def says(self) -> tuple[str, str]:
        """Code and reason: a problem with the same is the same problem."""
        return self.code, self.reason


def of(about: str, batch: str, error: StreamdpError, now: int) -> BatchProblem:
    """The problem of an error, in its words: our errors quote no records."""
    return BatchProblem(about, batch, error.code, error.line, now)


def known(database: Database, about: str) -> dict[str, tuple[str, str]]:
    """Known problems, by batch."""
    rows = database.execute("SELECT batch, code, reason FROM problem WHERE about = ?", [about])
    return {batch: (code, reason) for batch, code, reason in rows}


def replace(database: Database, about: str, found: Mapping[str, BatchProblem]) -> tuple[str, ...]:
    """Keep these problems and forget all others of a job; return the batches with new ones."""
    before = known(database, about)
    for batch in before.keys() - found.keys():
        settle(database, about, batch)
    new = tuple(key for key, problem in found.items() if before.get(key) != problem.says)
    for key in new:
        report(database, found[key])
    return new


def report(database: Database, problem: BatchProblem) -> None:
    """Record a problem in place of the last one of its batch."""
    database.execute(
        f"INSERT OR REPLACE INTO problem ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)",  # noqa: S608
        [problem.about, problem.batch, problem.code, problem.reason, problem.since],
    )
    row_checksums.update(database, "problem", about=problem.about, batch=problem.batch)


def settle(database: Database, about: str, batch: str) -> None:
    """Forget a problem that is solved."""
    database.execute("DELETE FROM problem WHERE about = ? AND batch = ?", [about, batch])


def problems(database: Database) -> tuple[BatchProblem, ...]:
    """All problems now; none in a store of a version that kept none."""
    if not database.table("problem").exists():
        return ()
    rows = database.execute(f"SELECT {_COLUMNS} FROM problem ORDER BY about, batch")  # noqa: S608
    return tuple(BatchProblem(*row) for row in rows)


def pause_job(database: Database, job: str, now: int) -> None:
    """Pause a job until it is resumed."""
    with transaction(database):
        add(database, job, now)


def add(database: Database, job: str, now: int) -> None:
    """Pause a job inside a transaction of the caller."""
    database.execute("INSERT OR IGNORE INTO pause (job, since) VALUES (?, ?)", [job, now])
    row_checksums.update(database, "pause", job=job)


def resume_job(database: Database, job: str) -> None:
    """Resume a job."""
    with transaction(database):
        database.execute("DELETE FROM pause WHERE job = ?", [job])


def paused_jobs(database: Database) -> frozenset[str]:
    """Names of paused jobs."""
    return frozenset(job for (job,) in database.execute("SELECT job FROM pause"))


def paused_since(database: Database, job: str) -> int | None:
    """When a job was paused; None if it is not."""
    row = database.execute("SELECT since FROM pause WHERE job = ?", [job]).fetchone()
    return None if row is None else int(row[0])


ALERTS = (
    """
    CREATE TABLE alert (
        id TEXT PRIMARY KEY,
        event TEXT NOT NULL,
        about TEXT NOT NULL,
        batch TEXT NOT NULL,
        reason TEXT NOT NULL,
        since INTEGER NOT NULL,
        over_at INTEGER,
        seal TEXT NOT NULL DEFAULT ''
    ) STRICT
    """,
    "CREATE UNIQUE INDEX alert_open ON alert (event, about, batch) WHERE over_at IS NULL",
)
"""The schema step of alerts."""


RESOLVED = "resolved"
"""Event of an alert that tells that a condition is over; its reason names the condition."""


@dataclass(frozen=True, slots=True)
class Alert:
    """A condition that needs an operator.

    Args:
        event: Its kind, as the configuration names it.
        about: Job, gate, source or sink; `store` for all.
        batch: Key, where it is one batch's.
        reason: Why, in public words.
    """

    event: str
    about: str
    batch: str
    reason: str

    @property
    def subject(self) -> tuple[str, str, str]:
        """What it is about, whatever the reason."""
        return self.event, self.about, self.batch


def as_told(alert: Alert, told: Collection[Alert]) -> Alert:
    """The alert of the same subject that was told and still holds, or itself if there is none.

    Another reason alone then tells nothing anew.
    """
    return next((each for each in told if each.subject == alert.subject), alert)


def open_alerts(database: Database) -> set[Alert]:
    """Conditions that were told and still hold."""
    rows = database.execute("SELECT event, about, batch, reason FROM alert WHERE over_at IS NULL")
    return {Alert(*row) for row in rows}


def tell_alert(
    database: Database, alert: Alert, identity: str, sinks: Collection[str], now: int
) -> None:
    """Open an alert, replacing one of the same subject, and queue it for sinks.

    One that tells of an end is over as it is told.
    """
    close_alert(database, alert, now)
    over_at = now if alert.event == RESOLVED else None
    database.execute(
        "INSERT INTO alert (id, event, about, batch, reason, since, over_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [identity, alert.event, alert.about, alert.batch, alert.reason, now, over_at],
    )
    row_checksums.update(database, "alert", id=identity)
    outbox.post(database, identity, sinks, now)


def close_alert(database: Database, alert: Alert, now: int) -> None:
    """Close an alert whose condition is over."""
    found = database.execute(
        "UPDATE alert SET over_at = ? WHERE event = ? AND about = ? AND batch = ?"
        " AND over_at IS NULL RETURNING id",
        [now, alert.event, alert.about, alert.batch],
    ).fetchall()
    for (identity,) in found:
        row_checksums.update(database, "alert", id=identity)
