"""Paused jobs, kept across restarts."""

from __future__ import annotations

from streamdp.database import Database
from streamdp.store import row_checksums
from streamdp.store.database import transaction


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
