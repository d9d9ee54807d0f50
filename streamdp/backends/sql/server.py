"""Base of the engines that ask a server: one connection, which is made anew where it broke."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Generic, TypeVar

from streamdp.backends.limits import CAUSES, Limits
from streamdp.backends.sql.engine import TypedBackend
from streamdp.backends.sql.relation import Relation
from streamdp.errors import UnreachableError
from streamdp.types import Batch, Query

Connection = TypeVar("Connection")

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


class ServerBackend(TypedBackend, Generic[Connection]):
    """Asks a table or query of a server; the session of its connection is in UTC."""

    __slots__ = ("_connection",)

    relation: Relation
    limits: Limits
    sleep: Callable[[float], None]
    """Waits between attempts to connect."""

    slack: float = SLACK

    _connection: Connection | None

    unreachable_message: str
    unreachable_hint: str
    refused_message: str

    @abstractmethod
    def opened(self) -> Connection:
        """A new connection whose session keeps the limits."""

    @abstractmethod
    def is_open(self, connection: Connection) -> bool:
        """Whether the library takes the connection to be open; the server is not asked."""

    @abstractmethod
    def ask_nothing(self, connection: Connection) -> None:
        """One trip to the server, which fails if the connection is broken."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

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

    def cancel(self) -> None:
        """End what the server does for this session, where hanging up does not."""
        return

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
                    what = self.refused_message
                    raise CAUSES[cause].error(what, self.relation.table, "") from None
                if pause is None:
                    break
                self.sleep(pause)
        raise UnreachableError(self.unreachable_message, hint=self.unreachable_hint) from None

    @contextmanager
    def session(self) -> Iterator[None]:
        """A connection that answers; a question that is left unanswered is ended."""
        try:
            self.ask_nothing(self.connected())
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

    def columns_of(self, query: Query, batch: Batch) -> dict[str, str]:
        """Names and types of the columns of a batch.

        Raises:
            SourceError: They cannot be read.
        """
        with self.session(), self._own_words(batch, "cannot be opened", self.opening_hint):
            return self.describe(f"SELECT * FROM {self.table(query, batch)}")

    def shown(self, select: str, query: Query, batch: Batch) -> list[tuple[Any, ...]]:
        """Rows of a SELECT over the records of a batch, which it calls `records`.

        Privacy: none. These are the records, for a person who may see them (`streamdp preview`).

        Raises:
            SourceError: They cannot be read.
        """
        unread = "could not be read"
        with (
            self._in_time(batch, unread),
            self.session(),
            self._own_words(batch, unread, self.reading_hint),
        ):
            table = self.table(query, batch)
            within = self._within(batch, self._described(query, table))
            records = f"WITH records AS (SELECT * FROM {table} WHERE {within})"
            return self.fetched(f"{records} {select}")

    def place(self, batch: Batch) -> str:
        """Name of the table."""
        return self.relation.table

    def moment(self, at: datetime) -> str:
        """A timestamp in UTC, the time zone of the session."""
        return f"TIMESTAMP '{at:%Y-%m-%d %H:%M:%S}'"
