"""Jobs that go on under another name: their releases, and what they learned, stay theirs.

Releases and charges keep the name that they were made under, as their seals do. A note of the
ledger says who renamed the job and why; whoever asks for the past of a job asks for all its names.
`rename` runs inside a transaction of its caller.
"""

from __future__ import annotations

import json
from typing import Any

from streamdp.database import Database
from streamdp.errors import ConfigurationError
from streamdp.privacy.filters import Caps
from streamdp.store import pauses
from streamdp.store.ledger import chain, ledger
from streamdp.types import Json

_RENAMED = "job renamed"


def names_of(database: Database, job: str) -> list[str]:
    """A job's name, and those that it had before."""
    names = [job]
    for name in names:
        rows = database.execute(
            "SELECT event ->> 'was' FROM ledger WHERE job = ? AND purpose = 'note'", [name]
        )
        names += [was for (was,) in rows if was not in names]
    return names


def all_names(database: Database, job: str) -> str:
    """The same as a list that SQL reads with `json_each`."""
    return json.dumps(names_of(database, job))


def rename(
    database: Database, job: str, was: str, source: str, signature: Json, about: Any, now: int
) -> int:
    """Let a job go on with the releases of another name, and return how many there are.

    Args:
        database: The store.
        job: The name that it is configured under.
        was: Its name so far, which no job is configured under.
        source: That it reads.
        signature: Of its kind.
        about: Who decided, and why.
        now: POSIX time.

    Raises:
        ConfigurationError: It has released something itself, or the other did not release the same.
    """
    found = database.execute("SELECT source, count(*) FROM release WHERE job = ? GROUP BY 1", [was])
    counts = dict(found.fetchall())
    if not counts:
        raise _refused(was, "has released nothing", "`streamdp budget --ledger` shows all jobs")
    if set(counts) != {source}:
        raise _refused(was, f"released batches of {min(counts)}, not of {source}", "")
    own = database.execute("SELECT 1 FROM release WHERE job = ? LIMIT 1", [job]).fetchone()
    if own or len(names_of(database, job)) > 1:
        raise _refused(
            job,
            "has a past of its own",
            "what was published under both names stays; give the job a third name that was never"
            f" used, and let that one go on as {was}",
        )
    if database.execute(
        "SELECT 1 FROM ledger WHERE job IN (?, ?) AND purpose = 'open'", [job, was]
    ).fetchone():
        raise _refused(was, "has a gate, whose runs belong to its name", f"name it {was} again")
    if _signature(database, was) != json.loads(json.dumps(signature)):
        raise _refused(
            was,
            "asked another question",
            "configure the same question under the new name: kind, columns, groups' columns and"
            " learner as they were",
        )
    chain.append(
        database,
        at=now,
        purpose="note",
        scope=ledger.WHOLE_STORE,
        job=job,
        event={"type": "note", "what": _RENAMED, "was": was, **about},
        caps=Caps(0, 0),
    )
    if was in pauses.paused_jobs(database):
        pauses.add(database, job, now)
    return int(counts[source])


def _signature(database: Database, job: str) -> Json:
    row = database.execute(
        "SELECT signature FROM learner WHERE job IN (SELECT value FROM json_each(?))"
        " AND signature != '' ORDER BY version DESC LIMIT 1",
        [all_names(database, job)],
    ).fetchone()
    return json.loads(row[0]) if row else None


def _refused(job: str, what: str, hint: str) -> ConfigurationError:
    return ConfigurationError(f"{job} {what}", where=f"releases.{job}", hint=hint)
