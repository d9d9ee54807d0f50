"""MariaDB: a table or query of a database, asked where it is."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from socket import SHUT_RDWR
from typing import TYPE_CHECKING, Any

import numpy as np

from streamdp.backends.limits import Cause, Limits
from streamdp.backends.mariadb.dialect import (
    COLLATION,
    LONGEST_UNIT,
    MariaDBDialect,
    Operand,
    operands,
    require_alike,
)
from streamdp.backends.mariadb.section import ServerAddress
from streamdp.backends.sql.engine import expressions
from streamdp.backends.sql.relation import computes, notice
from streamdp.backends.sql.scan import Field
from streamdp.backends.sql.server import LOCK_SECONDS, ServerBackend, lock_seconds
from streamdp.errors import SourceError
from streamdp.types import RECORD, Batch, IntArray, KeyQuery, Query

if TYPE_CHECKING:
    import pymysql


BINARY = 63
"""Number of the character set of what is no text."""

UNSIGNED = 32
"""Flag of a column without a sign."""

_NAMES = {
    1: "tinyint",
    2: "smallint",
    3: "int",
    4: "float",
    5: "double",
    6: "null",
    7: "timestamp",
    8: "bigint",
    9: "mediumint",
    10: "date",
    11: "time",
    12: "datetime",
    13: "year",
}
"""Names of types by their numbers in the protocol, `enum_field_types`."""

_DECIMAL = (0, 246)
_SHORT = (15, 253, 254)
_LONG = (249, 250, 251, 252)


def kind_of(field: Any) -> str:
    """Name of a column's type; a text or bytes with its length in bytes, a decimal with its digits.

    Args:
        field: As PyMySQL reads it from the server.
    """
    number, binary = field.type_code, field.charsetnr == BINARY
    if number in _SHORT:
        return f"{'varbinary' if binary else 'varchar'}({field.length})"
    if number in _LONG:
        return "blob" if binary else "text"
    if number in _DECIMAL:
        around = (field.scale > 0) + (not field.flags & UNSIGNED)  # its point and its sign
        return f"decimal({field.length - around},{field.scale})"
    return _NAMES.get(number, f"type {number}")


_CAUSES: dict[int, Cause] = {
    1205: "lock",
    1969: "timeout",
    1317: "timeout",
    1044: "authentication",
    1045: "authentication",
    1698: "authentication",
    1142: "permission",
    1143: "permission",
    1227: "permission",
    1049: "table",
    1146: "table",
    1053: "unreachable",
    1927: "unreachable",
    2002: "unreachable",
    2003: "unreachable",
    2006: "unreachable",
    2013: "unreachable",
}
"""Causes by the number of an error."""

_SERVER = "SELECT @@version, @@server_uid, @@hostname, @@port, @@datadir"
"""The identifier is from 10.5.26, 10.6.19, 10.11.9 and 11.1.6 on."""

_LARGEST = "SELECT @@max_allowed_packet"

_REST = 1 << 18
"""Bytes of a question beside its known keys, which no question comes near."""

_SNAPSHOTS = "InnoDB"
"""The storage engine that answers a question from one state of its table."""

_TABLES = (
    "SELECT table_schema, table_name, table_type, engine FROM information_schema.tables"
    " WHERE lower(table_schema) = lower(coalesce(%s, database()))"
    " AND lower(table_name) = lower(%s)"
)

_CHARSETS = (
    "SELECT column_name, character_set_name FROM information_schema.columns"
    " WHERE table_schema = %s AND table_name = %s"
)

_COMPUTED = (
    "SELECT column_name FROM information_schema.columns"
    " WHERE table_schema = %s AND table_name = %s AND extra LIKE '%%VIRTUAL%%'"
)

_VIEW = (
    "SELECT view_definition FROM information_schema.views"
    " WHERE table_schema = %s AND table_name = %s"
)

_NUMBERS = (
    "SELECT table_id FROM information_schema.innodb_sys_tables"
    " WHERE lower(substring_index(name, '#', 1)) = %s"
)
"""A table, and each of its partitions, keeps its number when it is renamed."""


@dataclass(slots=True)
class MariaDBBackend(ServerBackend[ServerAddress, "pymysql.Connection[Any]"]):
    """Asks a MariaDB server; a user that may SELECT from the relation is enough.

    Memory is that of the session, which is read-only and in UTC, and the server ends a question
    that takes longer than it may. MariaDB cannot go on without a record at which an expression
    overflows, so expressions are made total, or refused.
    """

    name = "MariaDB"
    opening_hint = "is the name right, and may this user SELECT from it?"
    reading_hint = "look at the server: was it stopped, or the query killed or out of time?"
    unreachable_hint = (
        "is it up, of version 10.11.9 or later, and are host, user, password, database and"
        " certificate right?"
    )

    def dialect(self) -> MariaDBDialect:
        """MariaDB's SQL."""
        return MariaDBDialect(self._columns)

    def collated(self, columns: Mapping[str, str]) -> list[str]:
        """Columns with a collation: all texts, as nearly each drops case or blanks at the end."""
        return [name for name, kind in columns.items() if kind.startswith(("varchar", "text"))]

    def bytewise(self, columns: Mapping[str, str]) -> dict[str, str]:
        """SQL of all texts, told apart where their character set has what Unicode lacks."""
        dialect = self.dialect()
        sets = {
            column: charset
            for schema, table, _, _ in self._tables()
            for column, charset in self.rows(_CHARSETS, schema, table)
        }
        return {name: dialect.stored(name, sets.get(name)) for name in self.collated(columns)}

    def look_further(self, query: Query, batch: Batch, columns: Mapping[str, str]) -> None:
        """Refuse tables without snapshots, and operands that MariaDB would silently convert."""
        for _, _, form, engine in self._tables():
            if form == "BASE TABLE" and engine != _SNAPSHOTS:
                raise SourceError(
                    f"the table of source {batch.source} is stored by {engine}",
                    where=self.place(batch),
                    hint="one question needs one state of the table: ALTER TABLE … ENGINE=InnoDB",
                    source=batch.source,
                )
        if isinstance(query, KeyQuery):
            self._require_short(query, batch)
        self._require_stored(query, batch)
        self._require_alike(operands(expressions(query)), self.table(query, batch), batch)

    def _require_short(self, query: KeyQuery, batch: Batch) -> None:
        """Refuse more known keys than the server takes in a question.

        Privacy: known keys are public.
        """
        texts = [[key[i] for key in query.known] for i in range(len(query.columns))]
        times = 1 if query.bound is None else 2
        asked = times * len(self.dialect().text_table(texts, "known").encode()) + _REST
        ((most,),) = self.rows(_LARGEST)
        if asked > most:
            raise SourceError(
                f"{len(query.known)} known keys make a question of about {asked} bytes, and the"
                f" server takes {most}",
                where=self.place(batch),
                hint="raise max_allowed_packet of the server, which can be up to 1 GB; or leave"
                " keys out by `never` of the release",
                source=batch.source,
            )

    def _look_beneath(self, batch: Batch) -> None:
        """Look at what a query says of its table, before it is made total."""
        ServerBackend._look_beneath(self, batch)
        made = [each.sql for each in self.relation.columns if not each.source]
        made += [self.relation.where] if self.relation.where is not None else []
        rows = f"{self.relation.bare(self.dialect())} AS {self.dialect().name(RECORD)}"
        self._require_alike(operands(made), rows, batch)

    def _require_stored(self, query: Query, batch: Batch) -> None:
        """Refuse columns that are computed as they are read: one record may fail them."""
        # MariaDB finds columns in any capitals.
        said = " ".join(expressions(query)).lower()
        named = {each.lower() for each in (*self.own_columns(query), *self.relation.named)}
        for schema, table, _, _ in self._tables():
            for (column,) in self.rows(_COMPUTED, schema, table):
                if column.lower() in named or self.dialect().name(column).lower() in said:
                    raise SourceError(
                        f"column {column!r} is computed as it is read, and one record may fail it",
                        where=self.place(batch),
                        hint="make it a column that is STORED: its failure is that of who writes"
                        " the record",
                        source=batch.source,
                    )

    def _require_alike(self, found: list[Operand], table: str, batch: Batch) -> None:
        if not found:
            return
        parts = ", ".join(f"{each.sql} AS o{place}" for place, each in enumerate(found))
        with suppress(*self.failures()):  # what cannot be understood is told as such later
            kinds = self.describe(f"SELECT {parts} FROM {table}")
            require_alike(found, list(kinds.values()), batch.source)

    def notices(self, batch: Batch) -> list[str]:
        """A view that computes or that the user may not look into, and a missing privilege."""
        found = []
        with self.session(), self._redacted(batch, "could not be asked", self.opening_hint):
            for schema, table, form, _ in self._tables():
                if form == "VIEW":
                    found.append(self._of_view(f"{schema}.{table}", schema, table))
                try:
                    self.rows(_NUMBERS, f"{schema}/{table}".lower())
                except self.failures():
                    found.append(
                        f"a new name of {schema}.{table} would open a new budget: the user has not"
                        " the privilege PROCESS, by which its number is known"
                    )
        return [each for each in found if each]

    def _of_view(self, name: str, schema: str, table: str) -> str:
        """A warning about a view that computes, or nothing."""
        text = "".join(each or "" for (each,) in self.rows(_VIEW, schema, table))
        if not text:
            return (
                f"the view {name} is not looked into: the user has not the privilege SHOW VIEW; if"
                " it computes, a record that it fails at burns the charge, and of tables of MyISAM"
                " beneath it there is no snapshot"
            )
        return notice(name) if computes(text, "mysql") else ""

    def origins(self, batch: Batch) -> tuple[str, ...]:
        """The table by its name in the server, and by its numbers where the user may ask for them.

        A server is known by all that it says of itself: its identifier follows from port and
        network card, and changes with them, while its data stay in their folder.

        Raises:
            SourceError: The server cannot be asked.
        """
        with self.session(), self._redacted(batch, "could not be asked", self.opening_hint):
            ((_, identifier, name, port, folder),) = self.rows(_SERVER)
            servers = [f"{identifier}:{name}:{port}", f"{name}:{folder}"]
            if not self.address.is_here:
                servers.append(f"@{self.address.host}:{self.address.port}")
            found = []
            for schema, table, _, _ in self._tables():
                path = f"{schema}/{table}".lower()
                found.append(path)
                with suppress(*self.failures()):
                    found += [str(number) for (number,) in self.rows(_NUMBERS, path)]
        return tuple(f"mariadb:{server}/{each}" for server in servers for each in found)

    def _tables(self) -> list[tuple[Any, ...]]:
        schema, _, name = self.relation.table.rpartition(".")
        return self.rows(_TABLES, schema or None, name)

    def type_hint(self, source: str, field: Field) -> str:
        """Hint about types: there are no casts, and a unit has a greatest length."""
        longest = LONGEST_UNIT // 4
        return f"name another column, or cast it in a view: a unit is at most VARCHAR({longest})"

    def describe(self, select: str) -> dict[str, str]:
        """Names and types of the columns of a SELECT, which is not run."""
        with self.connected().cursor() as cursor:
            cursor.execute(f"{select} LIMIT 0")
            fields = cursor._result.fields  # `description` has neither length nor character set
        return {each.name: kind_of(each) for each in fields}

    def run(self, statement: str) -> IntArray:
        """The rows of the answer, as integers."""
        with self.connected().cursor() as cursor:
            cursor.execute(statement)
            rows = np.array(cursor.fetchall(), dtype=np.int64)
            return rows.reshape(-1, len(cursor.description))

    def failures(self) -> tuple[type[Exception], ...]:
        """PyMySQL's exceptions, and those of the connection beneath it."""
        import pymysql

        return (pymysql.MySQLError, OSError)

    def cause(self, error: Exception) -> Cause | None:
        """Classify by the server's number; a broken connection has one of the client, or none."""
        number = error.args[0] if error.args else None
        if isinstance(number, int) and number in _CAUSES:
            return _CAUSES[number]
        return "unreachable" if isinstance(error, OSError) else None

    def hang_up(self, connection: pymysql.Connection[Any]) -> None:
        """Shut the socket down."""
        shared = getattr(connection, "_sock", None)
        if shared is not None:
            with suppress(OSError):
                shared.shutdown(SHUT_RDWR)

    def cancel(self) -> None:
        """End what the server does for this session, if anything, from another one."""
        if self._connection is None:
            return
        number = int(self._connection.thread_id())
        with (
            suppress(*self.failures()),
            closing(self._connect({})) as other,
            other.cursor() as cursor,
        ):
            cursor.execute(f"KILL QUERY {number}")

    def is_open(self, connection: pymysql.Connection[Any]) -> bool:
        """Whether PyMySQL takes the connection to be open."""
        return bool(connection.open)

    def ping(self, connection: pymysql.Connection[Any]) -> None:
        """Ping the server."""
        connection.ping(reconnect=False)

    def opened(self) -> pymysql.Connection[Any]:
        """A session that is read-only, in UTC, within the limits."""
        return self._connect(settings(self.limits))

    def _connect(self, variables: Mapping[str, str]) -> pymysql.Connection[Any]:
        import pymysql

        connection: pymysql.Connection[Any] = pymysql.connect(**self.address.arguments())
        if variables:
            with connection.cursor() as cursor:
                listed = ", ".join(f"SESSION {name} = {value}" for name, value in variables.items())
                cursor.execute(f"SET {listed}")
        return connection


def settings(limits: Limits) -> dict[str, str]:
    """Variables of the session, as SQL: whatever the server's defaults are, counts are the same.

    It is read-only and in UTC, sees one snapshot a question, and returns all rows. A time of day
    beside a timestamp is not completed by the present day.
    """
    found = {
        "time_zone": "'+00:00'",
        "sql_mode": "'NO_UNSIGNED_SUBTRACTION'",
        "old_mode": "'ZERO_DATE_TIME_CAST'",
        "tx_isolation": "'REPEATABLE-READ'",
        "tx_read_only": "1",
        "collation_connection": COLLATION,
        "max_sort_length": str(4 * LONGEST_UNIT),
        "sql_select_limit": str(2**64 - 1),
        "sql_big_selects": "1",
        "lock_wait_timeout": str(lock_seconds(limits, LOCK_SECONDS)),
    }
    if limits.seconds is not None:
        found["max_statement_time"] = str(limits.seconds)
    if limits.memory is not None:
        found["max_session_mem_used"] = str(limits.memory)
    return found
