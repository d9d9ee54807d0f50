"""Alerts: conditions that need an operator, each told once when it begins and when it is over.

An alert is owed to its sink by the outbox, like a release. It is open for as long as its condition
holds, and what is open is not told again. Functions that write run inside a transaction of their
caller.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from streamdp.database import Database
from streamdp.store import outbox, row_checksums

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


def tell(database: Database, alert: Alert, identity: str, sinks: Collection[str], now: int) -> None:
    """Open an alert, replacing one of the same subject, and queue it for sinks.

    One that tells of an end is over as it is told.
    """
    close(database, alert, now)
    over_at = now if alert.event == RESOLVED else None
    database.execute(
        "INSERT INTO alert (id, event, about, batch, reason, since, over_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [identity, alert.event, alert.about, alert.batch, alert.reason, now, over_at],
    )
    row_checksums.update(database, "alert", id=identity)
    outbox.post(database, identity, sinks, now)


def close(database: Database, alert: Alert, now: int) -> None:
    """Close an alert whose condition is over."""
    found = database.execute(
        "UPDATE alert SET over_at = ? WHERE event = ? AND about = ? AND batch = ?"
        " AND over_at IS NULL RETURNING id",
        [now, alert.event, alert.about, alert.batch],
    ).fetchall()
    for (identity,) in found:
        row_checksums.update(database, "alert", id=identity)
