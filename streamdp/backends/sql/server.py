"""Base of the engines that ask a server: one connection, which is made anew where it broke."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from streamdp.backends.limits import CAUSES, NO_LIMITS, Limits
from streamdp.backends.sql.engine import TypedBackend
from streamdp.backends.sql.relation import Relation
from streamdp.errors import UnreachableError
from streamdp.types import Batch, Query


class Connects(Protocol):
    """A connection of a driver by Python's DB-API."""

    def cursor(self) -> Any:
        """A new cursor."""
        ...

    def close(self) -> None:
        """End the session."""
        ...


Address = TypeVar("Address")
Connection = TypeVar("Connection", bound=Connects)

PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds between attempts to connect; nothing is asked again once it was asked."""

LOCK_SECONDS = 30
"""How long the server waits for a lock that another session holds."""


def lock_seconds(limits: Limits, most: int) -> int:
    """Seconds to wait for a lock: fewer than the question has, or it is told as one that is slow.

    >>> [lock_seconds(Limits(seconds=seconds), 30) for seconds in (None, 600, 20, 1)]
    [30, 30, 10, 1]
    """
    return most if limits.seconds is None else max(1, min(most, limits.seconds // 2))


SLACK = 15.0
"""Seconds beyond its limit after which a question ends that the server itself has not ended."""


@dataclass(slots=True)
class ServerBackend(TypedBackend, Generic[Address, Connection]):
    """Asks a table or query of a server; the session of its connection is in UTC.

    Args:
        address: Where the server is; may hold a password, so it is not shown.
        relation: Table or query.
        time_column: Column whose UTC value puts a record in a window.
        limits: Time of a question, and memory that the server may take for it.
        sleep: Waits between attempts to connect.
    """

    address: Address = field(repr=False)
    relation: Relation
    time_column: str | None = None
    limits: Limits = NO_LIMITS
    sleep: Callable[[float], None] = time.sleep
    _connection: Connection | None = field(default=None, init=False, repr=False)
    _columns: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    slack = SLACK

    name: ClassVar[str]
    """What the engine is called."""

    unreachable_hint: ClassVar[str]

    @abstractmethod
    def opened(self) -> Connection:
        """A new connection, whose session is read-only, in UTC, and keeps the limits."""

    @abstractmethod
    def is_open(self, connection: Connection) -> bool:
        """Whether the driver takes the connection to be open; the server is not asked."""

    @abstractmethod
    def ping(self, connection: Connection) -> None:
        """One trip to the server, which fails if the connection is broken."""

    @abstractmethod
    def cancel(self) -> None:
        """End what the server does for this session, if anything."""

    @abstractmethod
    def hang_up(self, connection: Connection) -> None:
        """Shut the connection's socket down, from another thread: who waits for it fails."""

    def interrupt(self) -> None:
        """Cancel the question at the server, and stop waiting for it."""
        connection = self._connection
        if connection is not None:
            with suppress(*self.failures()):
                self.cancel()
            self.hang_up(connection)

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None and self.is_open(connection):
            with suppress(*self.failures()):
                connection.close()

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of a SELECT, with values in the place of each `%s`."""
        with self.connected().cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall())

    def fetched(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a SELECT."""
        return self.rows(statement)

    def connected(self) -> Connection:
        """The connection, made anew if it was closed.

        Raises:
            SourceError: The server refuses, or could not be reached in several attempts.
        """
        if self._connection is not None and not self.is_open(self._connection):
            self._connection = None
        for pause in (*PAUSES, None):
            if self._connection is not None:
                return self._connection
            try:
                self._connection = self.opened()
            except self.failures() as error:
                cause = self.cause(error)
                if cause in ("authentication", "table"):  # no pause changes these
                    what = f"the {self.name} server refuses a connection"
                    raise CAUSES[cause].error(what, self.relation.table, "") from None
                if pause is None:
                    break
                self.sleep(pause)
        unreachable = f"the {self.name} server cannot be reached"
        raise UnreachableError(unreachable, hint=self.unreachable_hint) from None

    @contextmanager
    def session(self) -> Iterator[None]:
        """A connection that answers; a question that is left unanswered is ended."""
        try:
            self.ping(self.connected())
        except self.failures():
            self.close()
            self.connected()
        try:
            yield
        except BaseException:
            self.cancel()
            self.close()
            raise

    def table(self, query: Query, batch: Batch) -> str:
        """The table or query, as it stands behind FROM."""
        return self.relation_sql(self.relation)

    def one_by_one(self, columns: Mapping[str, str]) -> dict[str, str]:
        """None: the server looks at each record."""
        return {}

    def place(self, batch: Batch) -> str:
        """Name of the table."""
        return self.relation.table
