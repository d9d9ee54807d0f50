"""Problems of batches, in public words, kept until they are solved; and jobs that are paused.

A reason names files, columns and types, never a value. Functions that write run inside a
transaction of their caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamdp.database import Database
from streamdp.errors import StreamdpError
from streamdp.store import row_checksums
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
