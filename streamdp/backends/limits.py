"""Limits of one question, and the causes for which an engine fails.

Limits are fixed in the configuration: so known before a charge is spent.

Privacy: a cause is told where it follows from the state of a server, its locks, its rights or its
clock, and never from what a record holds. Once a charge is spent only those are told that can
begin at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import Literal

from streamdp.errors import (
    AuthenticationError,
    PermissionDeniedError,
    SourceError,
    SourceLockedError,
    TooSlowError,
    UnreachableError,
)

AGAIN = 1.0
"""Seconds between calls to stop: an engine that has not begun yet has nothing to stop."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a question; None leaves one to the engine.

    Args:
        memory: Bytes.
        seconds: From asking to the answer.
        threads: Of an engine that runs in this process.
    """

    memory: int | None = None
    seconds: int | None = None
    threads: int | None = None


NO_LIMITS = Limits()


@contextmanager
def ended_after(seconds: float | None, stop: Callable[[], object]) -> Iterator[Event]:
    """Call `stop` from another thread, until it is heard, when the body takes longer.

    Args:
        seconds: None for no limit.
        stop: Makes the engine end what it does with an error.

    Yields:
        An event that is set once the body has taken longer.
    """
    late, done = Event(), Event()
    if seconds is None:
        yield late
        return

    def watch() -> None:
        pause = seconds
        while not done.wait(pause):
            late.set()
            with suppress(Exception):  # of a library whose connection ends at this moment
                stop()
            pause = AGAIN

    Thread(target=watch, daemon=True).start()
    try:
        yield late
    finally:
        done.set()


Cause = Literal["timeout", "lock", "unreachable", "authentication", "permission", "table"]


@dataclass(frozen=True, slots=True)
class _Explained:
    kind: type[SourceError]
    why: str
    hint: str

    def error(self, what: str, where: str, source: str) -> SourceError:
        """The error of this cause."""
        return self.kind(f"{what}: {self.why}", where=where, hint=self.hint, source=source)


CAUSES: dict[Cause, _Explained] = {
    "timeout": _Explained(
        TooSlowError,
        "it took longer than `engine.timeout` allows",
        "look at what else the server does and at an index on the time column; or give it more"
        " time: engine: {timeout: 2h}",
    ),
    "lock": _Explained(
        SourceLockedError,
        "another session holds a lock on it",
        "end the session that locks the table (LOCK TABLE, ALTER TABLE, VACUUM FULL); the batch is"
        " tried again",
    ),
    "unreachable": _Explained(
        UnreachableError,
        "its server does not answer",
        "is it up, and are host, port and network right? the batch is tried again",
    ),
    "authentication": _Explained(
        AuthenticationError,
        "its server does not admit this user",
        "look at user, password and database of engine.connection, and at whom the server admits"
        " from here",
    ),
    "permission": _Explained(
        PermissionDeniedError,
        "this user may not read it",
        "GRANT SELECT on its table, and USAGE of its schema, to the user of engine.connection",
    ),
    "table": _Explained(
        SourceError,
        "there is no such table or database",
        "look at the names of database, schema and table",
    ),
}
"""Causes of failures by name."""

AFTER_THE_CHARGE: tuple[Cause, ...] = ("timeout", "lock", "unreachable")
"""Causes that are told of a question whose charge is spent."""
