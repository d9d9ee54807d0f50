"""Causes for which an engine fails, each with its words and with what to do.

Privacy: a cause is told where it follows from the state of a server, its locks, its rights or its
clock, and never from what a record holds. Once a charge is spent only those are told that can
begin at any moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streamdp.errors import (
    AuthenticationError,
    PermissionDeniedError,
    SourceError,
    SourceLockedError,
    TooSlowError,
    UnreachableError,
)

Cause = Literal["timeout", "lock", "unreachable", "authentication", "permission", "table"]


@dataclass(frozen=True, slots=True)
class _Words:
    kind: type[SourceError]
    why: str
    hint: str

    def error(self, what: str, where: str, source: str) -> SourceError:
        """The error of this cause."""
        return self.kind(f"{what}: {self.why}", where=where, hint=self.hint, source=source)


CAUSES: dict[Cause, _Words] = {
    "timeout": _Words(
        TooSlowError,
        "it took longer than `engine.timeout` allows",
        "look at what else the server does and at an index on the time column; or give it more"
        " time: engine: {timeout: 2h}",
    ),
    "lock": _Words(
        SourceLockedError,
        "another session holds a lock on it",
        "end the session that locks the table (LOCK TABLE, ALTER TABLE, VACUUM FULL); the batch is"
        " tried again",
    ),
    "unreachable": _Words(
        UnreachableError,
        "its server does not answer",
        "is it up, and are host, port and network right? the batch is tried again",
    ),
    "authentication": _Words(
        AuthenticationError,
        "its server does not admit this user",
        "look at user, password and database of engine.connection, and at whom the server admits"
        " from here",
    ),
    "permission": _Words(
        PermissionDeniedError,
        "this user may not read it",
        "GRANT SELECT on its table, and USAGE of its schema, to the user of engine.connection",
    ),
    "table": _Words(
        SourceError,
        "there is no such table or database",
        "look at the names of database, schema and table",
    ),
}
"""Causes of failures by name."""

AFTER_THE_CHARGE: tuple[Cause, ...] = ("timeout", "lock", "unreachable")
"""Causes that are told of a question whose charge is spent."""
