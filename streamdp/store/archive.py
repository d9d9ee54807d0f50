"""The archive: batches that arrived, releases that were committed, states that were learned.

Functions that write run inside a transaction of their caller.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from streamdp.database import Database
from streamdp.errors import IntegrityError, StreamdpError
from streamdp.store import measurements, row_checksums
from streamdp.store.ledger.renames import all_names, names_of, names_since
from streamdp.store.release_rows import (
    OF_RELEASE,
    ROWS_OF_RELEASE,
    add_columns,
    columns_from,
    form_id,
    packed,
)
from streamdp.store.rollups import OF_ROLLUP
from streamdp.types import Batch, Json, Learned, Release

RHO_OF_RELEASE = (
    "CASE WHEN r.epsilon_nano IS NULL"
    " THEN (SELECT rho_nano FROM ledger WHERE seq = r.reservation) END"
)
"""SQL of the zero-concentrated loss of a release `r` that has no pure one."""

DELTA_OF_RELEASE = "(SELECT delta_atto FROM ledger WHERE seq = r.reservation)"
"""SQL of the chance that a release `r` loses more."""

_NOTICE = (
    "SELECT n.id, n.job, n.source, n.batch, b.window_start, b.window_end, n.kind,"
    " 0 AS epsilon_nano, n.noticed_at AS released_at, n.rows"
    " FROM notice n JOIN batch b ON b.source = n.source AND b.key = n.batch"
)
_ALERT = (
    "SELECT id, about AS job, '' AS source, batch, NULL AS window_start, NULL AS window_end,"
    " 'alert' AS kind, 0 AS epsilon_nano, since AS released_at,"
    " json_array(json_object('event', event, 'about', about, 'reason', reason)) AS rows"
    " FROM alert WHERE id = ?"
)
_RELEASE = (
    "SELECT r.id, r.job, r.source, r.batch, b.window_start, b.window_end, r.kind,"  # noqa: S608
    f" r.epsilon_nano, {RHO_OF_RELEASE} AS rho_nano, {DELTA_OF_RELEASE} AS delta_atto,"
    f" r.released_at, {ROWS_OF_RELEASE} AS rows, {OF_RELEASE} AS columns"
    " FROM release r JOIN batch b ON b.source = r.source AND b.key = r.batch"
)
_OF_JOB = "r.job IN (SELECT value FROM json_each(?))"
"""SQL for all names of a job."""

RETENTION = ("ALTER TABLE learner ADD COLUMN digest TEXT",)
"""The schema step: the newest states of a job are kept, the digests of all.

Rows that have a digest are sealed by it, hold no signature where that of the version before goes
on, and have no state once there are `KEPT` newer ones. Those from before have none and keep their
state: their seal covers it.
"""

KEPT = 32
"""States of a job that are kept: the newest one to go on from, others for `streamdp learned`."""

_DIGESTED = "2:"
"""Prefix of the seal of a release whose state is sealed by its digest."""

_MEASURED = "3:"
"""Prefix of the seal of a release whose measurements are sealed too."""

_SIGNATURE = (
    "(SELECT s.signature FROM learner s WHERE s.job = l.job AND s.version <= l.version"
    " AND s.signature != '' ORDER BY s.version DESC LIMIT 1)"
)
"""SQL of the signature of a row `l`."""

_NEWEST_LEARNED = (
    "(SELECT n.reservation FROM json_each(?) j CROSS JOIN learner n ON n.job = j.value"
    " AND n.version = (SELECT max(m.version) FROM learner m WHERE m.job = j.value)"
    " ORDER BY n.version DESC LIMIT 1)"
)
"""SQL of the charge of the newest version under some names, each of which an index finds."""

_SEALED = (
    "SELECT r.id, r.job, r.source, r.batch, r.kind, r.epsilon_nano, r.reservation, r.released_at,"  # noqa: S608
    f" r.version, {ROWS_OF_RELEASE}, b.window_start, b.window_end, l.job, l.version,"
    " CASE WHEN l.job NOT NULL THEN r.id END, {0}"
    " FROM release r LEFT JOIN batch b ON b.source = r.source AND b.key = r.batch"
    " LEFT JOIN learner l USING (reservation)"
    " LEFT JOIN learned_state s USING (reservation) WHERE r.id = ?"
)
_WHOLE = _SEALED.format("l.signature, s.state")
_BY_DIGEST = _SEALED.format(f"{_SIGNATURE}, lower(hex(l.digest))")


def add_batch(database: Database, batch: Batch, digest: bytes | None, now: int) -> None:
    """Write a batch down; a known key stays as it was."""
    database.execute(
        "INSERT INTO batch (source, key, window_start, window_end, digest, arrived_at)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [batch.source, batch.key, batch.start, batch.end, digest, now],
    )
    row_checksums.update(database, "batch", source=batch.source, key=batch.key)


def digest_of(database: Database, batch: Batch) -> bytes | None:
    """Keyed digest under which a batch was written down; private."""
    row = database.execute(
        "SELECT digest FROM batch WHERE source = ? AND key = ?", [batch.source, batch.key]
    ).fetchone()
    return row[0] if row else None


def known_batches(database: Database, source: str) -> dict[str, tuple[int | None, int | None]]:
    """Keys and windows of all batches of a source that were written down."""
    rows = database.execute(
        "SELECT key, window_start, window_end FROM batch WHERE source = ?", [source]
    )
    return {key: (start, end) for key, start, end in rows}


def released_batches(database: Database, job: str, source: str) -> frozenset[str]:
    """Keys of all batches that a job has released."""
    rows = database.execute(
        f"SELECT batch FROM release r WHERE {_OF_JOB} AND source = ?",  # noqa: S608
        [all_names(database, job), source],
    )
    return frozenset(key for (key,) in rows)


def has_arrived(database: Database, source: str) -> bool:
    """Whether a batch of a source has ever arrived."""
    rows = database.execute("SELECT 1 FROM batch WHERE source = ? LIMIT 1", [source])
    return rows.fetchone() is not None


def released_by_all(database: Database) -> Iterator[tuple[str, str, str]]:
    """Job, source and batch of every release."""
    yield from database.execute("SELECT job, source, batch FROM release")


def versions(database: Database) -> list[str]:
    """Versions of streamdp that made releases."""
    rows = database.execute("SELECT DISTINCT version FROM release ORDER BY 1")
    return [version for (version,) in rows]


def is_released(database: Database, job: str, batch: Batch) -> bool:
    """Whether a job has released a batch."""
    found = database.execute(
        f"SELECT 1 FROM release r WHERE {_OF_JOB} AND source = ? AND batch = ?",  # noqa: S608
        [all_names(database, job), batch.source, batch.key],
    )
    return found.fetchone() is not None


def add_release(database: Database, release: Release, reservation: int, version: str) -> None:
    """Write a release; job, source and batch together are unique."""
    text = json.dumps(release.rows, separators=(",", ":"))
    found = packed(text)
    form, rows = (None, text) if found is None else (form_id(database, found[0]), found[1])
    database.execute(
        "INSERT INTO release (reservation, id, job, source, batch, kind, epsilon_nano, released_at,"
        " version, form, rows) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            *(reservation, release.id, release.job, release.source, release.batch, release.kind),
            *(release.epsilon_nano, release.released_at, version, form, rows),
        ],
    )
    add_columns(database, release.job, reservation, release.columns)


def find_release(database: Database, job: str, batch: str) -> Release | None:
    """The one release of a batch by a job."""
    one = f"{_RELEASE} WHERE {_OF_JOB} AND r.batch = ? ORDER BY r.reservation DESC LIMIT 1"
    row = next(database.query(one, [all_names(database, job), batch]), None)
    return _release(row) if row else None


def require_release(database: Database, job: str, batch: str) -> Release:
    """The release of a batch.

    Raises:
        StreamdpError: There is none.
    """
    release = find_release(database, job, batch)
    if release is None:
        raise StreamdpError(
            f"{job} has no release of {batch!r}",
            hint="`streamdp releases` lists the batches that were released",
        )
    return release


def last_release(database: Database, job: str) -> Release | None:
    """The newest release of a job."""
    newest = f"{_RELEASE} WHERE {_OF_JOB} ORDER BY r.reservation DESC LIMIT 1"
    row = next(database.query(newest, [all_names(database, job)]), None)
    return _release(row) if row else None


def release_before(
    database: Database, job: str, batch: Batch, made_before: str | None = None
) -> Release | None:
    """The newest release of a job whose window ended by the time a batch begins.

    Without windows it is the newest of another batch.

    Args:
        database: The store.
        job: Whose.
        batch: Whose records came later.
        made_before: Id of a release; later ones do not count.
    """
    before = "r.batch <> ?" if batch.start is None else "b.window_end <= ?"
    newest = f"{_RELEASE} WHERE {_OF_JOB} AND {before}"
    about = [all_names(database, job), batch.key if batch.start is None else batch.start]
    if made_before is not None:
        newest += " AND r.reservation < (SELECT reservation FROM release WHERE id = ?)"
        about.append(made_before)
    order = "ORDER BY b.window_end DESC, r.reservation DESC LIMIT 1"
    row = next(database.query(f"{newest} {order}", about), None)
    return _release(row) if row else None


def release_of(database: Database, release_id: str) -> Release:
    """A release, or a notice, rollup or alert in the form of one, that is known to exist."""
    rollup = f"{OF_ROLLUP} WHERE id = ?"
    kinds = (f"{_RELEASE} WHERE r.id = ?", f"{_NOTICE} WHERE n.id = ?", rollup, _ALERT)
    return _release(next(row for kind in kinds for row in database.query(kind, [release_id])))


def add_notice(database: Database, notice: Release) -> None:
    """Write a public fact that cost nothing, in the form in which sinks take releases."""
    database.execute(
        'INSERT INTO notice (id, job, source, batch, kind, noticed_at, "rows")'
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            *(notice.id, notice.job, notice.source, notice.batch, notice.kind),
            *(notice.released_at, json.dumps(notice.rows)),
        ],
    )
    row_checksums.update(database, "notice", id=notice.id)


_MOMENT = "coalesce(b.window_start, moment_of_key(r.batch), r.released_at)"
"""Where a batch lies in time."""


def select_releases(
    database: Database,
    job: str | None = None,
    since: int | None = None,
    until: int | None = None,
    limit: int | None = None,
) -> tuple[Release, ...]:
    """Releases in the order of their batches; of many, the last `limit`.

    Args:
        database: The store.
        job: Of this job alone.
        since: First second of the windows wanted.
        until: Second after the last window wanted.
        limit: At most so many.
    """
    rows = database.query(
        f"{_RELEASE} WHERE (:job IS NULL OR r.job IN (SELECT value FROM json_each(:job)))"  # noqa: S608
        f" AND (:since IS NULL OR {_MOMENT} >= :since)"
        f" AND (:until IS NULL OR coalesce(b.window_end, {_MOMENT}) <= :until)"
        f" ORDER BY CASE WHEN :job IS NULL THEN {_MOMENT}"
        " ELSE coalesce(b.window_start, 0) END DESC,"
        " CASE WHEN b.window_start IS NULL THEN place_of_key(r.batch, r.released_at) END DESC,"
        " r.batch DESC, r.job DESC"
        " LIMIT :limit",
        {
            "job": None if job is None else all_names(database, job),
            "since": since,
            "until": until,
            "limit": -1 if limit is None else limit,
        },
    )
    return tuple(_release(row) for row in rows)[::-1]


def latest_learned(database: Database, job: str) -> Learned | None:
    """The newest state of a job's learner, in the names of now."""
    row = database.execute(
        f"SELECT l.version, {_SIGNATURE}, s.state, l.reservation"  # noqa: S608
        " FROM learner l JOIN learned_state s USING (reservation)"
        f" WHERE l.reservation = {_NEWEST_LEARNED}",
        [all_names(database, job)],
    ).fetchone()
    if row is None:
        return None
    learned = Learned(row[0], json.loads(row[1]), json.loads(row[2]))
    for names in names_since(database, job, row[3]):
        signature, state = names.of_signature(learned.signature), names.of_state(learned.state)
        learned = replace(learned, signature=signature, state=state)
    return learned


def version_after(database: Database, release_id: str) -> int:
    """Version of the state that was learned with a release."""
    (version,) = database.execute(
        "SELECT l.version FROM release r JOIN learner l USING (reservation) WHERE r.id = ?",
        [release_id],
    ).fetchone()
    return int(version)


def restarts(database: Database, job: str) -> int:
    """How often a learner began anew under another signature."""
    (number,) = database.execute(
        "SELECT count(*) FROM (SELECT signature, lag(signature) OVER (ORDER BY version) AS before"
        " FROM learner WHERE job = ? AND signature != '') WHERE before != signature",
        [job],
    ).fetchone()
    return int(number)


def newest_version(database: Database, job: str) -> int:
    """Version of the newest state of a job's learner, 0 before the first."""
    found = database.execute(
        f"SELECT version FROM learner WHERE reservation = {_NEWEST_LEARNED}",  # noqa: S608
        [all_names(database, job)],
    ).fetchone()
    return found[0] if found else 0


def is_forgotten(database: Database, job: str, version: int) -> bool:
    """Whether a state was learned and is not kept any more."""
    row = database.execute(
        "SELECT EXISTS (SELECT 1 FROM learned_state s WHERE s.reservation = r.reservation)"  # noqa: S608
        f" FROM learner r WHERE {_OF_JOB} AND version = ?",
        [all_names(database, job), version],
    ).fetchone()
    return row is not None and not row[0]


def learned_states(
    database: Database, job: str, until: int | None = None
) -> Iterator[tuple[Learned, Release]]:
    """Read what a job has learned and the releases that taught it, the newest first.

    Of older releases than the newest `KEPT` the states are forgotten.

    Args:
        database: The store.
        job: Under all its names.
        until: Newest version that is read.
    """
    rows = database.query(
        f"SELECT l.version, {_SIGNATURE} AS signature, kept.state, l.reservation AS made, of.*"  # noqa: S608
        " FROM learner l JOIN learned_state kept USING (reservation)"
        " JOIN release r USING (reservation)"
        f" JOIN ({_RELEASE}) of ON of.id = r.id"
        " WHERE l.job IN (SELECT value FROM json_each(:job))"
        " AND (:until IS NULL OR l.version <= :until) ORDER BY l.version DESC",
        {"job": all_names(database, job), "until": until},
    )
    for row in rows:
        version, signature, state, made = map(row.pop, ("version", "signature", "state", "made"))
        learned, release = Learned(version, json.loads(signature), json.loads(state)), _release(row)
        for names in names_since(database, job, made):
            about = names.of_signature(learned.signature)
            learned = Learned(version, about, names.of_state(learned.state))
            release = replace(release, rows=names.of_rows(release.rows))
        yield learned, release


def signature_of(database: Database, release_id: str) -> Json:
    """Question of a release, as its kind signs it; None where that was not kept."""
    signature = (
        f"SELECT {_SIGNATURE} FROM release r JOIN learner l USING (reservation) WHERE r.id = ?"  # noqa: S608
    )
    found = database.execute(signature, [release_id])
    row = found.fetchone()
    return json.loads(row[0]) if row else None


def add_learned(database: Database, job: str, learned: Learned, reservation: int) -> None:
    """Write the state that follows a release, and forget an old one, but for its digest."""
    signature, state = json.dumps(learned.signature), json.dumps(learned.state)
    before = database.execute(
        f"SELECT {_SIGNATURE} FROM learner l WHERE l.job = ? ORDER BY l.version DESC LIMIT 1",  # noqa: S608
        [job],
    ).fetchone()
    same = before is not None and before[0] == signature
    digest = hashlib.sha256(state.encode()).digest()
    row = [reservation, job, learned.version, "" if same else signature, digest]
    database.execute("INSERT INTO learner VALUES (?, ?, ?, ?, ?)", row)
    database.execute("INSERT INTO learned_state VALUES (?, ?)", [reservation, state])
    database.execute(
        "DELETE FROM learned_state WHERE reservation IN (SELECT reservation FROM learner"
        " WHERE job IN (SELECT value FROM json_each(?)) AND version = ? AND digest IS NOT NULL)",
        [all_names(database, job), learned.version - KEPT],
    )


def seal_of(database: Database, release_id: str) -> str | None:
    """SHA-256 of a release: its row, its window, its measurements, what was learned from it.

    What was learned counts by its digest, which outlives it; a state that is there must have it.
    """
    measured = measurements.sealed_rows(database, release_id)
    if not _has_digest(database, release_id):
        row = database.execute(_WHOLE, [release_id]).fetchone()
        return _hashed(row) if row and not measured else None
    state, digest = database.execute(
        "SELECT s.state, l.digest FROM release r JOIN learner l USING (reservation)"
        " LEFT JOIN learned_state s USING (reservation) WHERE r.id = ?",
        [release_id],
    ).fetchone()
    if state is not None and hashlib.sha256(state.encode()).digest() != digest:
        return None
    row = database.execute(_BY_DIGEST, [release_id]).fetchone()
    return _MEASURED + _hashed((*row, measured)) if measured else _DIGESTED + _hashed(row)


def _has_digest(database: Database, release_id: str) -> bool:
    row = database.execute(
        "SELECT l.digest FROM release r JOIN learner l USING (reservation) WHERE r.id = ?",
        [release_id],
    ).fetchone()
    return row is not None and row[0] is not None


def _hashed(row: tuple[Json, ...] | None) -> str:
    return hashlib.sha256(json.dumps(row).encode()).hexdigest()


def verify(database: Database) -> None:
    """Compare every release with the seal in its row of the ledger.

    Rows of releases from before there were seals have none.

    Raises:
        IntegrityError: A release or what was learned from it was changed, removed or added.
    """
    commits = database.execute(
        "SELECT seq, release_id, event ->> 'seal' FROM ledger WHERE purpose = 'commit'"
    ).fetchall()
    for seq, release_id, seal in commits:
        found = seal_of(database, release_id)
        if found is None or seal not in (None, found):
            raise _altered(f"the release of row {seq} of the ledger", seq)
    for table in ("release", "learner"):
        (rows,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
        if rows != len(commits):
            raise _altered(f"table {table}", None)
    for table, column, among in (
        ("learned_state", "reservation", "SELECT reservation FROM learner"),
        ("release_form", "id", "SELECT form FROM release WHERE form NOT NULL"),
    ):
        strays = f"SELECT 1 FROM {table} WHERE {column} NOT IN ({among}) LIMIT 1"  # noqa: S608
        if database.execute(strays).fetchone():
            raise _altered(f"table {table}", None)
    measurements.verify(database)
    _require_newest_states(database)


def _require_newest_states(database: Database) -> None:
    """Require the state of every job's newest release; a name that was given up has none left."""
    newest = dict(database.execute("SELECT job, max(version) FROM learner GROUP BY job").fetchall())
    gone_on = {
        (name, version - 1)
        for job in newest
        for name in names_of(database, job)
        for (version,) in database.execute(
            "SELECT min(version) FROM learner WHERE job = ?", [job]
        ).fetchall()
        if name != job
    }
    for job, version in newest.items():
        kept = database.execute(
            "SELECT 1 FROM learned_state JOIN learner USING (reservation)"
            " WHERE job = ? AND version = ?",
            [job, version],
        ).fetchone()
        if not kept and (job, version) not in gone_on:
            raise _altered(f"the learned state of {job}", None)


def _altered(what: str, seq: int | None) -> IntegrityError:
    return IntegrityError(
        f"{what} was altered",
        hint="restore the store from a backup; what was spent since must be assumed spent",
        seq=seq,
    )


def _release(row: dict[str, Any]) -> Release:
    rows: list[Json] = json.loads(row["rows"])
    return Release(**{**row, "rows": tuple(rows), "columns": columns_from(row.get("columns"))})
