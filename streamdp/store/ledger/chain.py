"""The hash chain of the ledger: rows are added behind the last, and all are verified.

Functions that write run inside a transaction of their caller.

An event that repeats another names its row. Charges of a job differ from release to release by
digests alone, such as that of the prior. The first is stored whole, and those after it as
`{"as":ROW,"of":[DIGESTS]}`: the event of that row with these digests. Hashes of rows cover whole
events, so the chain does.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from streamdp.database import Database
from streamdp.errors import IntegrityError
from streamdp.privacy.amounts import UNBOUNDED
from streamdp.privacy.filters import Caps, Measure
from streamdp.types import Json

_DIGEST = re.compile('"[0-9a-f]{64}"')
_REPEATED = re.compile(r'\{"as":([0-9]{1,18}),"of":\[[^]]*\]\}')
"""A repeated event; JSON that is written whole has a space behind the colon."""

WHOLE_OR_REPEATED = (
    "(SELECT w.event FROM ledger w WHERE w.seq ="
    """ CASE WHEN substr(l.event, 1, 6) = '{"as":' THEN l.event ->> 'as' ELSE l.seq END)"""
)
"""SQL of the event of a row `l`, or of the row whose event it repeats with other digests."""

_LAST_EVENT = "SELECT max(seq) FROM ledger WHERE job = ? AND purpose = 'reserve'"


def shortened(database: Database, job: str, text: str) -> str:
    """The event of a job's new charge as it is stored."""
    (last,) = database.execute(_LAST_EVENT, [job]).fetchone()
    if last is None:
        return text
    row = _row_of(_stored(database, last)) or last
    if _DIGEST.split(_stored(database, row)) != _DIGEST.split(text):
        return text
    digests = [each[1:-1] for each in _DIGEST.findall(text)]
    return json.dumps({"as": row, "of": digests}, separators=(",", ":"))


class Events:
    """Reads events whole; one that many rows repeat is read once.

    Args:
        database: The store.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._parts: dict[int, list[str]] = {}

    def whole(self, text: str) -> str:
        """The event of a row, as its hash covers it, from what is stored of it.

        Raises:
            IntegrityError: The row that it repeats is not there, or has other digests.
        """
        row = _row_of(text)
        if row is None:
            return text
        parts = self._parts.get(row)
        if parts is None:
            parts = self._parts[row] = _DIGEST.split(_stored(self._database, row))
        digests = _DIGEST.findall(text)
        if len(digests) != len(parts) - 1:
            raise _altered(row)
        pairs = zip(parts, [*digests, ""], strict=True)
        return "".join(each for pair in pairs for each in pair)


def _row_of(text: str) -> int | None:
    """Row that an event repeats."""
    found = _REPEATED.fullmatch(text)
    return int(found[1]) if found else None


def _stored(database: Database, seq: int) -> str:
    row = database.execute("SELECT event FROM ledger WHERE seq = ?", [seq]).fetchone()
    if row is None:
        raise _altered(seq)
    return str(row[0])


def _altered(seq: int) -> IntegrityError:
    return IntegrityError(
        f"the ledger was altered at row {seq}: later rows repeat another event",
        hint="restore the store from a backup; what was spent since must be assumed spent",
        seq=seq,
    )


PURPOSES = frozenset(
    {"cap", "reserve", "commit", "burn", "open", "join", "close", "note", "refuse"}
)

_GENESIS = "0" * 64
_LAST = 2**63 - 1
_HASHED = (
    *("seq", "at", "purpose", "scope", "job", "batch", "reservation"),
    *("epsilon_nano", "rho_nano", "event", "release_id"),
    *("batch_cap_nano", "lifetime_cap_nano", "lifetime_spent_nano", "previous"),
)


_SUMS = "lifetime_spent_nano", "lifetime_rho_nano", "lifetime_delta_atto"
"""Spending of a scope up to a row: pure loss, null if there is none, the other, and delta."""

_STORED = (
    *(name for name in _HASHED if name != "previous"),
    *("hash", "lifetime_rho_nano", "delta_atto", "lifetime_delta_atto"),
)
_INSERT = (
    f"INSERT INTO ledger ({', '.join(_STORED)})"  # noqa: S608
    f" VALUES ({', '.join(f':{name}' for name in _STORED)})"
)

_Sums = tuple[int | None, int, int]

_NOTHING: _Sums = (0, 0, 0)


def append(
    database: Database,
    *,
    scope: str,
    caps: Caps,
    event: Json,
    epsilon_nano: int | None = 0,
    rho_nano: int = 0,
    delta_atto: int = 0,
    repeats: bool = False,
    **row: Any,
) -> int:
    """Write one row behind the last and return its number.

    An event that may repeat that of the job's charge before is stored in short (`Events`).
    """
    last, previous = head(database)
    sums = _added(_sums_of(database, scope), epsilon_nano, rho_nano, delta_atto)
    seq = last + 1
    full = dict.fromkeys(_HASHED) | {
        "seq": seq,
        "previous": previous,
        "scope": scope,
        "epsilon_nano": epsilon_nano,
        "rho_nano": rho_nano,
        "delta_atto": delta_atto,
        "event": json.dumps(event, sort_keys=True),
        "batch_cap_nano": caps.batch_nano,
        "lifetime_cap_nano": caps.lifetime_nano,
        **dict(zip(_SUMS, sums, strict=True)),
        **row,
    }
    stored = {**full, "hash": bytes.fromhex(_hash(full))}
    del stored["previous"]
    if repeats:
        stored["event"] = shortened(database, str(row["job"]), str(full["event"]))
    database.execute(_INSERT, stored)
    return seq


def spent_of(database: Database, scope: str, measure: Measure = "epsilon") -> int:
    """Sum of all charges of a scope over its life; `UNBOUNDED` if one has no such loss."""
    epsilon, rho, delta = _sums_of(database, scope)
    if measure != "epsilon":
        return rho if measure == "rho" else delta
    return UNBOUNDED if epsilon is None else epsilon


def _sums_of(database: Database, scope: str) -> _Sums:
    """Spending of a scope: its last row has it, added up again by `verify`."""
    return _sums_until(database, scope, _LAST)


def _sums_until(database: Database, scope: str, seq: int) -> _Sums:
    """Spending of a scope up to a row, as its last row until then says."""
    row: _Sums | None = database.execute(
        "SELECT lifetime_spent_nano, lifetime_rho_nano, lifetime_delta_atto FROM ledger"
        " WHERE scope = ? AND seq <= ? ORDER BY seq DESC LIMIT 1",
        [scope, seq],
    ).fetchone()
    return row or _NOTHING


def _added(sums: _Sums, epsilon: int | None, rho: int, delta: int) -> _Sums:
    """Sums with one more charge; a pure loss that is none stays none."""
    before, rho_before, delta_before = sums
    pure = None if before is None or epsilon is None else before + epsilon
    return pure, rho_before + rho, delta_before + delta


def head(database: Database) -> tuple[int, str]:
    """Number and hash of the last row."""
    row = database.execute("SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1").fetchone()
    return (row[0], _text(row[1])) if row else (0, _GENESIS)


def hashes(database: Database) -> Iterator[tuple[int, str]]:
    """Number and hash of every row, oldest first, from before the first."""
    yield 0, _GENESIS
    for seq, digest in database.execute("SELECT seq, hash FROM ledger ORDER BY seq"):
        yield seq, _text(digest)


def verify(database: Database, newest: int | None = None) -> None:
    """Walk the chain, and add up what each scope has spent.

    Args:
        database: The store.
        newest: Only so many of the newest rows, from the one before them on; all rows by default.

    Raises:
        IntegrityError: A row was changed, removed or added by other hands.
    """
    behind = 0 if newest is None else max(head(database)[0] - newest, 0)
    previous, expected = _hash_of(database, behind), behind + 1
    spent: dict[str, _Sums] = {}
    events = Events(database)
    for stored in _rows(database, behind):
        row = {"previous": previous, **stored, "event": events.whole(stored["event"])}
        row["hash"] = _text(row["hash"])
        if row["purpose"] not in PURPOSES:
            raise IntegrityError(
                f"the ledger holds a row of unknown purpose {row['purpose']!r}",
                hint="it was written by a newer streamdp: install that version or a later one",
            )
        scope = row["scope"]
        if behind and scope not in spent:
            spent[scope] = _sums_until(database, scope, behind)
        before = spent.get(scope, _NOTHING)
        amounts = row["epsilon_nano"], row["rho_nano"], row.get("delta_atto", 0)
        spent[scope] = _added(before, *amounts)
        if (
            row["seq"] != expected
            or row["previous"] != previous
            or row["hash"] != _hash(row)
            or not _adds_up(row, spent[scope])
        ):
            raise IntegrityError(
                f"the ledger was altered at row {expected}",
                hint="restore the store from a backup; what was spent since must be assumed spent",
                seq=expected,
            )
        previous, expected = row["hash"], expected + 1


def _hash_of(database: Database, seq: int) -> str | None:
    """Hash of a row, of the genesis for 0; None if it is missing."""
    row = database.execute("SELECT hash FROM ledger WHERE seq = ?", [seq]).fetchone()
    return _GENESIS if seq == 0 else row and _text(row[0])


def _text(digest: bytes | str) -> str:
    """A hash as hashes cover it, in digits; a copy of an earlier schema stores it so."""
    return digest.hex() if isinstance(digest, bytes) else digest


def _adds_up(row: dict[str, Any], sums: _Sums) -> bool:
    """Whether the sums of a row are right; a copy of an earlier schema lacks some."""
    return all(row.get(name, sum_) == sum_ for name, sum_ in zip(_SUMS, sums, strict=True))


def _rows(database: Database, behind: int) -> Iterator[dict[str, Any]]:
    yield from database.query("SELECT * FROM ledger WHERE seq > ? ORDER BY seq", [behind])


def _hash(row: dict[str, Any]) -> str:
    """The hash of a row; without a delta it is that of rows from before there was any."""
    delta = row.get("delta_atto", 0)
    words = [*(row[name] for name in _HASHED), *([delta] if delta else [])]
    text = json.dumps(words, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
