"""MariaDB, asked where the records are: its section, its SQL, and the questions to a server.

Types are those of `kind_of`. Expressions are such as no record can fail (`backends.sql.total`) in
MariaDB, whose numbers overflow. Decimals have 65 digits, 38 of them behind the point: numbers whose
sum or product has no room there are computed as doubles. Times that are none are null by
themselves, as are quotients by zero.

Operands are refused where MariaDB would convert one in silence. It subtracts 2024-01-01 00:00:00
from another time as the number 20240101000000, and reads a text beside a number as the digits that
it begins with. Other engines refuse that or mean something else. So the server is asked for the
type of each operand before anything is spent.

Privacy: an expression is a total function of one record, or is refused by configuration and types.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from socket import SHUT_RDWR
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np
from pydantic import Field

from streamdp.backends.limits import Cause, Limits
from streamdp.backends.section import Location, ServerEngineSection, Start
from streamdp.backends.sql import scan
from streamdp.backends.sql.dialect import Role, SqlDialect, quoted
from streamdp.backends.sql.engine import expressions
from streamdp.backends.sql.relation import computes, notice
from streamdp.backends.sql.server import LOCK_SECONDS, ServerBackend, lock_seconds
from streamdp.backends.sql.total import (
    DOUBLE,
    OTHER,
    PARTS,
    Made,
    TotalExpression,
    Value,
    integers,
)
from streamdp.errors import ConfigurationError, SourceError, require_extra
from streamdp.sections.dialects import Dialect
from streamdp.sections.secrets import Concealed, reveal
from streamdp.types import RECORD, Backend, Batch, IntArray, KeyQuery, Query

if TYPE_CHECKING:
    import pymysql
    from sqlglot.expressions import Expr

PORT = 3306
CONNECT_SECONDS = 10
_HERE = ("localhost", "127.0.0.1", "::1")
_OPTIONS = ("socket", "sslmode", "sslrootcert")
_MODES = ("disable", "verify-full")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server, a database and a user.

    Args:
        host: Name or address; ignored where a socket is named.
        port: Of the server.
        database: That tables without one before their name belong to.
        user: Name.
        password: Not shown.
        socket: Path of the socket of a server of this machine.
        encrypted: Whether the connection is, to a server whose certificate names the host.
        authority: File of certificates that are trusted; those of the system by default.
    """

    host: str
    port: int
    database: str
    user: str
    password: str = field(repr=False)
    socket: str | None = None
    encrypted: bool = True
    authority: str | None = None

    @classmethod
    def of(cls, url: str) -> ServerAddress:
        """An address from `mariadb://USER:PASSWORD@HOST:PORT/DATABASE?OPTION=…`.

        Raises:
            ConfigurationError: It is none. Its text is not told: it may hold a password.

        >>> ServerAddress.of("mariadb://reader:secret@db/warehouse?sslmode=disable")
        ServerAddress(host='db', port=3306, database='warehouse', user='reader', socket=None, \
encrypted=False, authority=None)
        """
        try:
            parts = urlsplit(url)
            options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True))
            port = parts.port or PORT
        except ValueError:
            raise _no_address() from None
        host, database = unquote(parts.hostname or "localhost"), unquote(parts.path[1:])
        here = host in _HERE or "socket" in options
        mode = options.get("sslmode", "disable" if here else "verify-full")
        known = set(options) <= set(_OPTIONS) and mode in _MODES
        if parts.scheme != "mariadb" or not known or not database or "/" in database:
            raise _no_address()
        return cls(
            host,
            port,
            database,
            unquote(parts.username or ""),
            unquote(parts.password or ""),
            options.get("socket"),
            mode != "disable",
            options.get("sslrootcert"),
        )

    @property
    def is_here(self) -> bool:
        """Whether the server is reached by a name that each machine has for itself."""
        return self.socket is not None or self.host in _HERE

    def arguments(self) -> dict[str, Any]:
        """Arguments of PyMySQL for it.

        Raises:
            OSError: The file of certificates cannot be read.
        """
        trusted = ssl.create_default_context(cafile=self.authority) if self.encrypted else None
        return {
            "host": self.host,
            "port": self.port,
            "unix_socket": self.socket,
            "database": self.database,
            "user": self.user,
            "password": self.password,
            "ssl": trusted,
            "ssl_disabled": trusted is None,
            "charset": "utf8mb4",
            "autocommit": True,
            "connect_timeout": CONNECT_SECONDS,
            "program_name": "streamdp",
            "local_infile": False,
        }


def _no_address() -> ConfigurationError:
    return ConfigurationError(
        "this is not a connection string",
        where="sources.engine.connection",
        hint="mariadb://reader@db:3306/warehouse, with ?sslmode=verify-full or disable,"
        " sslrootcert=FILE, or socket=PATH",
    )


class MariaDBEngine(ServerEngineSection):
    """A MariaDB server."""

    dialect: ClassVar[Dialect] = "mariadb"

    kind: Literal["mariadb"] = Field(description="`mariadb`: a MariaDB server.")
    connection: Concealed = Field(
        description="Connection URL, with `?sslmode=verify-full` (the default for another machine)"
        " or `disable`, `sslrootcert=FILE`, `socket=PATH`. A user with SELECT suffices. A password"
        " must come from the environment or a file.",
        examples=["mariadb://reader@db/warehouse", {"file": "/run/secrets/connection"}],
    )

    def backend(self, location: Location, start: Start | None = None) -> Backend:
        """The server's table, read through a connection that is made when it is first asked."""
        require_extra("pymysql", "mariadb", "sources.engine")

        address = ServerAddress.of(reveal(self.connection))
        return MariaDBBackend(address, location.table(), location.time_column, self.limits())

    def server(self) -> str:
        """Host or socket, port and database."""
        address = ServerAddress.of(reveal(self.connection))
        return f"mariadb://{address.socket or address.host}:{address.port}/{address.database}"


WHOLE = ("tinyint", "smallint", "mediumint", "int", "bigint", "year")
REAL = ("decimal", "float", "double")
INSTANTS = ("datetime", "timestamp")
NUMBERS = (*WHOLE, *REAL, "date", *INSTANTS)

COLLATION = "utf8mb4_nopad_bin"
"""Texts are compared by all of their bytes; others leave out case, accents or blanks at the end."""

LOSSLESS = ("latin1", "utf8mb3", "utf8mb4")
"""Character sets that have no two texts of one UTF-8."""

LONGEST_UNIT = 2048
"""Bytes; a longer text or one without a length would be sorted by its first bytes alone."""

_WHOLE = Value("exact", 0, 20, whole=True)


class MariaDBExpression(TotalExpression):
    """Makes an expression total.

    MariaDB reads a text beside a number as one and finds columns in any case, so nothing is left to
    its own refusals.

    >>> MariaDBExpression.rewrite("`a` * `b` > 1", {"a": "int", "b": "bigint"})
    'CAST(`a` AS DECIMAL(10, 0)) * CAST(`b` AS DECIMAL(20, 0)) > 1'
    """

    engine = "MariaDB"
    dialect = "mysql"
    truth = Value("exact", 0, 1, whole=True)
    double_type = "double"
    digits, scale = 65, 38
    folds_names = True

    types: ClassVar[Mapping[str, Value]] = {
        **integers(tinyint=3, smallint=5, mediumint=8, int=10, bigint=20, year=4),
        **dict.fromkeys(("float", "double"), DOUBLE),
        "date": Value("date"),
        **dict.fromkeys(INSTANTS, Value("moment")),
        **dict.fromkeys(("varchar", "text", "varbinary", "blob"), Value("text")),
    }

    constants: ClassVar[Mapping[str, Value]] = {
        **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), _WHOLE),
        **dict.fromkeys(("FLOAT", "DOUBLE"), DOUBLE),
        "DATE": Value("date"),
        **dict.fromkeys(("DATETIME", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ"), Value("moment")),
    }
    """Types that a constant may be cast to, by sqlglot's names."""

    def rules(self) -> dict[type[Expr], Callable[[Expr], Made]]:
        from sqlglot import exp

        parts = (exp.TimestampDiff, exp.DayOfWeek, exp.DayOfYear, exp.Week, exp.Anonymous)
        found = super().rules() | dict.fromkeys(parts, self._counted)
        times = (exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.TimeToStr)
        return found | dict.fromkeys(times, self._read)

    def moved(self, node: Expr, one: Made, other: Made) -> Made:
        from sqlglot import exp

        if not isinstance(other[0], exp.Interval):
            raise self.refusal("a time takes an interval such as INTERVAL 1 DAY")
        return type(node)(this=one[0], expression=other[0]), Value("moment")

    def cast(self, node: Expr) -> Made:
        from sqlglot import exp

        if node.find(exp.Column) is None:
            return node, self.constants.get(node.args["to"].this.name, OTHER)
        if node.is_type("double"):
            return self.double(*self.of(node.this))
        if not isinstance(node.this, exp.TimeToStr):  # the beginning of a month, day or hour
            raise self.refusal("a cast")
        node.set("this", self.of(node.this)[0])
        return node, Value("moment")

    def part(self, node: Expr) -> Made:
        if node.this.name.upper() not in PARTS:
            raise self.refusal(f"MariaDB knows no {node.this.name.lower()} of a time")
        node.set("expression", self.of(node.expression)[0])
        return node, Value("exact", 0, 4, whole=True)

    def _counted(self, node: Expr) -> Made:
        """Numbers that functions make of a time: microseconds, or days and weeks."""
        from sqlglot import exp

        if node.find(exp.Column) is None:
            return node, OTHER
        if isinstance(node, exp.Anonymous):
            if node.name.upper() != "WEEKDAY":
                raise self.refusal(f"{node.name.lower()} is not known to be total here")
            node.set("expressions", [self.of(each)[0] for each in node.expressions])
        else:
            node.set("this", self.of(node.this)[0])
        return node, Value("exact", 0, 19, whole=True)

    def _read(self, node: Expr) -> Made:
        """A time that stands in a function of times."""
        inside, value = self.of(node.this)
        if value.kind == "text":
            raise self.refusal(f"{inside.sql(self.dialect)} is no time")
        node.set("this", inside)
        return node, Value("moment")

    def interval(self, node: Expr) -> Made:
        node.set("this", self.of(node.this)[0])
        return node, Value("span")


class MariaDBDialect(SqlDialect):
    """See `SqlDialect`."""

    roles: ClassVar[Mapping[Role, tuple[str, ...]]] = {
        "value": (*NUMBERS, "time"),
        "unit": (*NUMBERS, "varchar", "varbinary"),
        "group": (*WHOLE, "date", "varchar", "text"),
        "listed": (*WHOLE, "date", "varchar", "text"),
        "time": ("date", *INSTANTS),
    }
    whole_types, real_types, instant_types = WHOLE, REAL, INSTANTS
    interval_type, binary_type = "time", "varbinary"
    text, quote = "CHAR", "`"
    whole = small = "SIGNED"
    nulls_first = ""  # they come first by themselves
    grouping_sets = False
    total = MariaDBExpression

    def takes(self, role: Role, kind: str) -> bool:
        """Whether a type can play a part; a text that bounds units has a greatest length."""
        length = re.match(r"var\w+\((\d+)", kind)
        too_long = role == "unit" and length is not None and int(length[1]) > LONGEST_UNIT
        return not too_long and super().takes(role, kind)

    def literal(self, value: str) -> str:
        return quoted(value.replace("\\", "\\\\"), "'")

    def rows(self, rows: Sequence[Sequence[str]], name: str, columns: Sequence[str]) -> str:
        """Literal rows by WITH, as MariaDB takes no names behind a derived table."""
        listed = ", ".join(f"({', '.join(row)})" for row in rows)
        names = ", ".join(columns)
        return f"(WITH {name}({names}) AS (VALUES {listed}) SELECT * FROM {name}) AS {name}"

    def as_text(self, value: str, kind: str) -> str:
        return _utf8(value if re.match("varchar|text", kind) else f"CAST({value} AS CHAR)")

    def short(self, text: str, longest: int) -> str:
        """The bytes of a text, whose sort knows how many there are, with a length to index."""
        return f"CAST(CAST({text} AS CHAR({longest})) AS BINARY)"

    def blob(self, key: str) -> str:
        return key

    def text_table(self, columns: Sequence[Sequence[str]], name: str) -> str:
        """Texts by JSON; each column is as wide as the longest text needs."""
        rows = json.dumps(list(zip(*columns, strict=True)), ensure_ascii=False)
        wide = [max((len(text) for text in texts), default=1) for texts in columns]
        read = ", ".join(f"g{i} VARCHAR({n}) PATH '$[{i}]'" for i, n in enumerate(wide))
        shown = ", ".join(f"CAST(g{i} AS BINARY) AS g{i}" for i in range(len(columns)))
        table = f"JSON_TABLE({self.literal(rows)}, '$[*]' COLUMNS({read})) AS listed"
        return f"(SELECT {shown} FROM {table}) AS {name}"

    def micros(self, value: str) -> str:
        return f"timestampdiff(MICROSECOND, TIMESTAMP '1970-01-01 00:00:00', {value})"

    def days(self, value: str) -> str:
        return f"datediff({value}, DATE '1970-01-01')"

    def interval_micros(self, value: str) -> str:
        return f"TIME_TO_SEC({value}) * 1000000"

    def unit(self, column: str, kind: str) -> str:
        """A unit; a text as its bytes, whose sort knows how many there are.

        Privacy: keys by which texts are sorted are filled up with zeros, so `A` and `A` before a
        byte of zero would be sorted as one and counted as many.
        """
        name = self.name(column)
        return f"CAST({name} AS BINARY)" if kind.startswith("varchar") else name

    def bytewise(self, column: str) -> str:
        return _utf8(self.name(column))

    def stored(self, column: str, charset: str | None) -> str:
        """A text column as UTF-8 that no two texts share, compared byte by byte.

        Character sets other than UTF-8 have letters that Unicode lacks, and all of these would
        become one `?`. A text that does not come back from UTF-8 as it was is written as U+10FFFF,
        which no such set has, and its bytes as the letters that latin1 has for them.

        Privacy: two units are two texts, so records of one push out none of the other.
        """
        if charset is None or charset in LOSSLESS:
            return self.bytewise(column)
        name = self.name(column)
        text = f"CONVERT({name} USING utf8mb4)"
        same = f"CAST(CONVERT({text} USING {charset}) AS BINARY) = CAST({name} AS BINARY)"
        spelt = f"CONVERT(CONVERT(CAST({name} AS BINARY) USING latin1) USING utf8mb4)"
        lost = f"CONCAT(CONVERT(X'F48FBFBF' USING utf8mb4), {spelt})"
        return _utf8(f"CASE WHEN {same} THEN {text} ELSE {lost} END")

    def start(self, text: str) -> str:
        return f"CAST(conv(substr(md5({text}), 1, 4), 16, 10) AS SIGNED)"


def _utf8(text: str) -> str:
    """A text in UTF-8, compared by its bytes."""
    return f"CONVERT({text} USING utf8mb4) COLLATE {COLLATION}"


_MOMENT = "date or timestamp"

_FAMILIES = {
    "number": (
        *("tinyint", "smallint", "mediumint", "int", "bigint", "year"),
        *("decimal", "float", "double"),
    ),
    "text": ("varchar", "text"),
    _MOMENT: ("date", "datetime", "timestamp"),
}


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of an operator.

    Args:
        sql: Of the operand.
        operator: Number of the operator in which it stands.
        wanted: What the operator takes; None for whatever stands beside it.
        literal: Whether it is a literal text, which may stand for a time.
    """

    sql: str
    operator: int
    wanted: str | None
    literal: bool


def operands(texts: Iterable[str]) -> list[Operand]:
    """Operands of all operators of some expressions in MariaDB's dialect, but intervals."""
    from sqlglot import exp

    found: list[Operand] = []
    for number, node in enumerate(_nodes(texts)):
        parts, wanted = _taken(node)
        for part in parts:
            is_text = isinstance(part, exp.Literal) and part.is_string
            found.append(Operand(part.sql("mysql"), number, wanted, is_text))
    return found


def _taken(node: Expr) -> tuple[list[Expr], str | None]:
    """Operands of a node that is an operator, and the type that it takes."""
    from sqlglot import exp

    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod):
        if isinstance(node.expression, exp.Interval):
            return [node.this], _MOMENT
        return [node.this, node.expression], "number"
    if isinstance(node, exp.Neg | exp.Abs | exp.Round | exp.Floor | exp.Ceil | exp.Ln | exp.Sqrt):
        return [node.this], "number"
    if isinstance(node, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.NullSafeEQ):
        return [node.this, node.expression], None
    if isinstance(node, exp.Between):
        return [node.this, node.args["low"], node.args["high"]], None
    if isinstance(node, exp.In):
        return [node.this, *node.expressions], None
    if isinstance(node, exp.Extract):
        return [node.expression], _MOMENT
    times = (exp.TimestampDiff, exp.TimeToStr, exp.DayOfWeek, exp.DayOfYear, exp.Week)
    if isinstance(node, times):
        return [node.this], _MOMENT
    if isinstance(node, exp.Anonymous) and node.name.upper() == "WEEKDAY":
        return node.expressions, _MOMENT
    return [], None


def _nodes(texts: Iterable[str]) -> Iterator[Expr]:
    import sqlglot

    for text in texts:
        with suppress(sqlglot.errors.SqlglotError):  # the server refuses it by itself
            yield from sqlglot.parse_one(text, read="mysql").walk()


def require_alike(found: Sequence[Operand], kinds: Sequence[str], source: str) -> None:
    """Refuse operands of other types than their operator takes, or than stand beside them.

    Args:
        found: Operands.
        kinds: Types of the same.
        source: Name of the source.

    Raises:
        SourceError: There is one.
    """
    beside: dict[int, str] = {}
    for operand, kind in zip(found, kinds, strict=True):
        family = _family(kind)
        if family == "null":
            continue
        expected = operand.wanted or beside.setdefault(operand.operator, family)
        if operand.literal and expected == _MOMENT:
            continue
        if family != expected:
            raise SourceError(
                f"an expression for source {source} needs a {expected} where MariaDB has {kind}",
                where=operand.sql,
                hint="seconds of a time are extract(epoch FROM it); cast a text in a view",
                source=source,
            )


def _family(kind: str) -> str:
    head = kind.partition("(")[0]
    return next((name for name, kinds in _FAMILIES.items() if head in kinds), head)


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

    def type_hint(self, source: str, field: scan.Field) -> str:
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
