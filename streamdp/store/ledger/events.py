"""Events of the ledger as they are stored: one that repeats another names its row.

Charges of a job differ from release to release by digests alone, such as that of the prior. The
first is stored whole, and those after it as `{"as":ROW,"of":[DIGESTS]}`: the event of that row with
these digests. Hashes of rows cover whole events, so the chain does.
"""

from __future__ import annotations

import json
import re

from streamdp.database import Database
from streamdp.errors import IntegrityError

_DIGEST = re.compile('"[0-9a-f]{64}"')
_REPEATED = re.compile(r'\{"as":([0-9]{1,18}),"of":\[[^]]*\]\}')
"""A repeated event; JSON that is written whole has a space behind the colon."""

WHOLE_OR_REPEATED = (
    "(SELECT w.event FROM ledger w WHERE w.seq ="
    """ CASE WHEN substr(l.event, 1, 6) = '{"as":' THEN l.event ->> 'as' ELSE l.seq END)"""
)
"""SQL of the event of a row `l`, or of the row whose event it repeats with other digests."""

_LAST = "SELECT max(seq) FROM ledger WHERE job = ? AND purpose = 'reserve'"


def shortened(database: Database, job: str, text: str) -> str:
    """The event of a job's new charge as it is stored."""
    (last,) = database.execute(_LAST, [job]).fetchone()
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
