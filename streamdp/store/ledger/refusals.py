"""Batches that a cap has refused, so that each is tried once under the caps in force.

Charges are never taken back, so the stretches that hold a batch stay as full as they were: no time
that passes makes room for it. A row `refuse` remembers that; a later row `cap` ends its word.
Functions that write run inside a transaction of their caller.
"""

from __future__ import annotations

from streamdp.database import Database
from streamdp.store.ledger.chain import append
from streamdp.store.ledger.ledger import caps_of


def pass_over(database: Database, scope: str, job: str, batch: str, cap: str, now: int) -> None:
    """Remember that a cap has refused a batch to a job or a gate."""
    append(
        database,
        at=now,
        purpose="refuse",
        scope=scope,
        job=job,
        batch=batch,
        event={"type": "refused", "cap": cap},
        caps=caps_of(database, scope),
    )


def passed_over(database: Database, scope: str, job: str) -> frozenset[tuple[str, str]]:
    """A job or gate, and keys of the batches that were refused to it since the caps were set.

    One that was insisted on, and then found room, is no longer among them.

    Args:
        database: The store.
        scope: Whose caps.
        job: Or gate.
    """
    rows = database.execute(
        "SELECT job, batch FROM ledger r WHERE job = :job AND +scope = :scope"
        " AND purpose = 'refuse' AND seq >"
        " (SELECT max(seq) FROM ledger WHERE +scope = :scope AND job IS NULL AND purpose = 'cap')"
        " AND NOT EXISTS (SELECT 1 FROM ledger c WHERE c.scope = r.scope AND c.batch = r.batch"
        " AND c.purpose IN ('reserve', 'join') AND c.job = r.job AND c.seq > r.seq)",
        {"scope": scope, "job": job},
    )
    return frozenset((task, batch) for task, batch in rows)


def refused_since(database: Database, scope: str, job: str) -> int | None:
    """When caps began to refuse a job after its last charge; None if they do not."""
    (since,) = database.execute(
        "SELECT min(at) FROM ledger WHERE scope = :scope AND job = :job AND purpose = 'refuse'"
        " AND seq > coalesce((SELECT max(seq) FROM ledger WHERE job = :job"
        "   AND purpose IN ('reserve', 'open')), 0)",
        {"scope": scope, "job": job},
    ).fetchone()
    return None if since is None else int(since)
