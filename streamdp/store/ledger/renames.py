"""Jobs that go on under another name, or in other names of groups, columns and measures.

Releases and charges keep the name that they were made under, as their seals do. A note of the
ledger says who renamed the job and why; whoever asks for the past of a job asks for all its names.
So it is with groups, columns and measures: what was learned before the note is read in their new
names. `rename` and `rename_within` run inside a transaction of their caller.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from streamdp.database import Database
from streamdp.errors import ConfigurationError
from streamdp.privacy.filters import Caps
from streamdp.store import problems
from streamdp.store.ledger import chain, ledger
from streamdp.types import Json, Learned, NewNames

_RENAMED = "job renamed"
_WITHIN = "names changed"


def names_of(database: Database, job: str) -> list[str]:
    """A job's name, and those that it had before."""
    names = [job]
    for name in names:
        rows = database.execute(
            "SELECT event ->> 'was' FROM ledger WHERE job = ? AND purpose = 'note'"
            " AND event ->> 'was' IS NOT NULL",
            [name],
        )
        names += [was for (was,) in rows if was not in names]
    return names


def names_since(database: Database, job: str, made: int) -> list[NewNames]:
    """Names that changed within a job after the charge of one of its releases, oldest first."""
    return [names for seq, names in all_changes(database, job) if seq > made]


def all_changes(database: Database, job: str) -> list[tuple[int, NewNames]]:
    """Rows of the ledger with names that changed within a job, oldest first."""
    rows = database.execute(
        "SELECT seq, event FROM ledger WHERE job IN (SELECT value FROM json_each(?))"
        " AND purpose = 'note' AND event ->> 'what' = ? ORDER BY seq",
        [all_names(database, job), _WITHIN],
    ).fetchall()
    return [(seq, _from_json(json.loads(event))) for seq, event in rows]


def _from_json(event: Json) -> NewNames:
    return NewNames(
        tuple((tuple(old), tuple(new)) for old, new in event["groups"]),
        tuple((old, new) for old, new in event["columns"]),
        tuple((old, new) for old, new in event["measures"]),
    )


def rename_within(
    database: Database,
    job: str,
    names: NewNames,
    learned: Learned | None,
    signature: Json,
    about: Any,
    now: int,
) -> int:
    """Let a job go on with what it learned in other names, and return how many releases taught it.

    Args:
        database: The store.
        job: The name that it is configured under.
        names: Of groups, columns and measures, old and new.
        learned: The newest that it learned, in its names so far.
        signature: Of its kind, in the new names.
        about: Who decided, and why.
        now: POSIX time.

    Raises:
        ConfigurationError: It learned nothing of an old name, or knows a new one already, or more
            than the names has changed.
    """
    if learned is None:
        raise _refused(job, "has released nothing", "")
    for old, new in names.groups:
        if _without(names, old, learned.state):
            raise _refused(job, f"has learned nothing of group {', '.join(old)}", "")
        if not _without(NewNames(((new, (*new, "")),)), new, learned.state):
            raise _refused(
                job,
                f"has learned of group {', '.join(new)} already",
                "what two groups taught cannot be put together",
            )
    if names.of_signature(learned.signature) != json.loads(json.dumps(signature)):
        raise _refused(
            job,
            "asks a question that differs from its releases by more than these names",
            "name each column and measure that changed; if other keys changed too, or names of axes"
            " of a workload, it learns anew",
        )
    event = {"type": "note", "what": _WITHIN, **asdict(names), **about}
    chain.append(
        database,
        at=now,
        purpose="note",
        scope=ledger.WHOLE_STORE,
        job=job,
        event=event,
        caps=Caps(0, 0),
    )
    return learned.version


def _without(names: NewNames, group: tuple[str, ...], state: Json) -> bool:
    """Whether a state knows nothing of a group that would be renamed."""
    alone = NewNames(tuple(pair for pair in names.groups if pair[0] == group))
    return bool(alone.of_state(state) == state)


NAMED = "IN (SELECT value FROM json_each(:names))"
"""The condition of SQL that a column is among the names of `all_names`."""


def all_names(database: Database, job: str) -> str:
    """All names of a job as a list that SQL reads with `json_each`."""
    return json.dumps(names_of(database, job))


def rename(
    database: Database,
    job: str,
    was: str,
    source: str,
    learned: Learned | None,
    signature: Json,
    about: Any,
    now: int,
) -> int:
    """Let a job go on with the releases of another name, and return how many there are.

    Args:
        database: The store.
        job: The name that it is configured under.
        was: Its name so far, which no job is configured under.
        source: That it reads.
        learned: The newest that was learned under the other name.
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
    if learned is None or learned.signature != json.loads(json.dumps(signature)):
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
    if was in problems.paused_jobs(database):
        problems.add(database, job, now)
    return int(counts[source])


def _refused(job: str, what: str, hint: str) -> ConfigurationError:
    return ConfigurationError(f"{job} {what}", where=f"releases.{job}", hint=hint)
