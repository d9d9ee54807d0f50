"""PostgreSQL, asked where the records are: its section, its SQL, and the questions to a server.

Types are names of `pg_type` in `format_type`. Expressions are such as no record can fail
(`backends.sql.total`), in PostgreSQL, which has `numeric` for what overflows. Decimals and times
are null in arithmetic where they lie beyond public bounds: 10^30, and the years 1 to 9999.

What a table leads to, and could fail on a record, is refused by the catalog. A virtual generated
column is computed as it is read, a foreign table is read by another server's rules, and a policy
for rows is an expression like any other. A function or operator of another schema may take the
place of PostgreSQL's own, wherever the search path says so.

Privacy: an expression is a total function of one record, or is refused by configuration and types.
Catalogs are public, and are asked before a charge.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from streamdp.backends.limits import Cause
from streamdp.backends.section import Location, ServerEngineSection, Start
from streamdp.backends.sql.dialect import SEPARATOR, Role, SqlDialect, family
from streamdp.backends.sql.engine import expressions
from streamdp.backends.sql.relation import computes, notice
from streamdp.backends.sql.scan import Scan
from streamdp.backends.sql.server import LOCK_SECONDS, ServerBackend, lock_seconds
from streamdp.backends.sql.total import (
    DOUBLE,
    FAR,
    OTHER,
    PARTS,
    Made,
    TotalExpression,
    UnfitError,
    Value,
    integers,
)
from streamdp.errors import ConfigurationError, SourceError, require_extra
from streamdp.sections.dialects import Dialect
from streamdp.sections.secrets import Concealed, reveal
from streamdp.types import Backend, Batch, CellQuery, IntArray, KeyQuery, Query

if TYPE_CHECKING:
    import psycopg
    from sqlglot.expressions import Expr


class PostgresEngine(ServerEngineSection):
    """A PostgreSQL server."""

    dialect: ClassVar[Dialect] = "postgres"

    kind: Literal["postgres"] = Field(description="`postgres`: a PostgreSQL server.")
    connection: Concealed = Field(
        description="Connection URL or libpq string. A role with SELECT suffices. A password must"
        " come from the environment or a file.",
        examples=["postgresql://reader@db/warehouse", {"file": "/run/secrets/connection"}],
    )

    def backend(self, location: Location, start: Start | None = None) -> Backend:
        """The server's table, read through a connection that is made when it is first asked."""
        require_extra("psycopg", "postgres", "sources.engine")

        table, time_column = location.table(), location.time_column
        return PostgresBackend(reveal(self.connection), table, time_column, self.limits())

    def server(self) -> str:
        """Host, port and database."""
        require_extra("psycopg", "postgres", "sources.engine")
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        try:
            known = conninfo_to_dict(reveal(self.connection))
        except ProgrammingError:
            raise ConfigurationError(
                "this is not a connection string",
                where="sources.engine.connection",
                hint="host=db dbname=warehouse user=streamdp, or"
                " postgresql://streamdp@db/warehouse",
            ) from None
        return f"postgres://{known.get('host')}:{known.get('port') or 5432}/{known.get('dbname')}"


WHOLE = ("smallint", "integer", "bigint")
REAL = ("real", "double precision", "numeric")
INSTANTS = ("timestamp without time zone", "timestamp with time zone")
LONG = ("text", "character varying")
TEXTS = (*LONG, "character", "uuid", "boolean")
COMPARED = (*WHOLE, *REAL, "date", *INSTANTS)

LONGEST = 2**28
"""Bytes of a unit that is hashed as it is; a longer one may not fit a text of PostgreSQL."""

LONGEST_LETTERS = 2**24
"""Bytes of a text whose letters are changed or trimmed: PostgreSQL takes up to eight times as many,
and ends a question at a gigabyte."""

_DECIMAL = Value("exact", -FAR, FAR, raw=True)
_DATE, _INSTANT = Value("date", raw=True), Value("moment", raw=True)

_PARTS = (*PARTS, "EPOCH")
_PARTS_OF_DATES = ("DOW", "ISODOW", "DOY", "WEEK", "ISOYEAR", "DECADE", "CENTURY", "MILLENNIUM")
"""Parts that PostgreSQL knows of every interval, and those of dates and timestamps."""

_WHOLE = Value("exact", 0, 19, whole=True)


class PostgresExpression(TotalExpression):
    """Makes an expression total; what has no operator the server refuses itself.

    >>> PostgresExpression.rewrite('"a" * "b" > 1', {"a": "integer", "b": "integer"})
    'CAST("a" AS DECIMAL) * CAST("b" AS DECIMAL) > 1'
    """

    engine = "PostgreSQL"
    dialect = "postgres"
    truth = Value("text")
    rest_of_doubles = False
    counts_days = True
    _in_letters = False

    types: ClassVar[Mapping[str, Value]] = {
        **integers(smallint=5, integer=10, bigint=19),
        "numeric": _DECIMAL,
        **dict.fromkeys(("real", "double precision"), DOUBLE),
        "date": _DATE,
        **dict.fromkeys(INSTANTS, _INSTANT),
        "interval": Value("span", raw=True),
        **dict.fromkeys((*TEXTS, "bytea"), Value("text")),
        **dict.fromkeys((*LONG, "citext"), Value("text", raw=True)),
    }

    constants: ClassVar[Mapping[str, Value]] = {
        **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), _WHOLE),
        "DECIMAL": _DECIMAL,
        **dict.fromkeys(("FLOAT", "DOUBLE"), DOUBLE),
        "DATE": _DATE,
        **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ"), _INSTANT),
    }
    """Types that a constant may be cast to, by sqlglot's names."""

    def rules(self) -> dict[type[Expr], Callable[[Expr], Made]]:
        from sqlglot import exp

        letters = dict.fromkeys((exp.Lower, exp.Upper, exp.Trim), self._letters)
        return super().rules() | letters | {exp.TimestampTrunc: self.start}

    def _letters(self, node: Expr) -> Made:
        """A function of a text of which PostgreSQL takes some bytes for each letter."""
        outside, self._in_letters = self._in_letters, True
        made = self._inside(node)
        self._in_letters = outside
        return made

    def _column(self, node: Expr) -> Made:
        """A column; one whose letters are looked at is null where it is too long for that."""
        made, value = super()._column(node)
        if self._in_letters and value.kind == "text" and value.raw:
            short = f"CASE WHEN octet_length(CAST(x AS text)) <= {LONGEST_LETTERS} THEN x END"
            made = self.parsed(short, made)
        return made, value

    def unfit(self, node: Expr, value: Value) -> Exception:
        return UnfitError() if value.kind == "text" else super().unfit(node, value)

    def as_decimal(self, node: Expr, value: Value) -> Made:
        if value.whole:
            node = self.as_type(node, "numeric")
        else:
            node = self.parsed(f"CASE WHEN abs(x) <= 1e{FAR} THEN round(x, {FAR}) END", node)
        return node, replace(value, whole=False, raw=False)

    def cast(self, node: Expr) -> Made:
        from sqlglot import exp

        if node.find(exp.Column) is None:
            return node, self.constants.get(node.args["to"].this.name, OTHER)
        inside, value = self.of(node.this)
        if not node.is_type("double") or value.kind == "text":
            raise self.refusal("a cast")
        return self.double(inside, value)

    def part(self, node: Expr) -> Made:
        inside, value = self.guarded(*self.of(node.expression))
        part = node.this.name.upper()
        if value.kind == "text":
            raise UnfitError
        known = {"span": _PARTS, "other": ("HOUR", "MINUTE", "SECOND", "EPOCH")}
        if part not in known.get(value.kind, (*_PARTS, *_PARTS_OF_DATES)):
            raise self.refusal(f"PostgreSQL knows no {part.lower()} of this")
        if value.kind == "date":
            inside = self.as_type(inside, "timestamp")
        node.set("expression", inside)
        return node, Value("exact", -6, 15 if value.kind != "span" else 20)

    def start(self, node: Expr) -> Made:
        """The beginning of the month, day or hour of a time."""
        inside, value = self.guarded(*self.of(node.this))
        part = node.text("unit").upper()
        if value.kind == "text":
            raise UnfitError
        if value.kind not in ("date", "moment") or part not in (*PARTS, *_PARTS_OF_DATES):
            raise self.refusal(f"PostgreSQL knows no beginning of a {part.lower()} of this")
        node.set("this", inside)
        return node, Value("moment", years=value.years)

    def compared(self, made: list[Made]) -> list[Made]:
        """Numbers of two families are doubles in a comparison, which a decimal may leave."""
        if all(value.kind != "double" for _, value in made):
            return made
        return [
            self.double(each, value) if value.kind == "exact" and not value.whole else (each, value)
            for each, value in made
        ]


class PostgresDialect(SqlDialect):
    """See `SqlDialect`."""

    roles: ClassVar[Mapping[Role, tuple[str, ...]]] = {
        "value": (*COMPARED, "interval"),
        "unit": (*COMPARED, *TEXTS, "bytea"),
        "group": (*WHOLE, *TEXTS, "date"),
        "listed": (*WHOLE, *TEXTS, "date", "numeric"),
        "time": ("date", *INSTANTS),
    }
    whole_types, real_types, instant_types = WHOLE, REAL, INSTANTS
    interval_type, binary_type = "interval", "bytea"
    double, text = "double precision", "text"
    total = PostgresExpression

    def as_text(self, value: str, kind: str) -> str:
        """Text of a value; whole numerics are written without a fraction."""
        whole = f"trim_scale({value})" if family(kind) == "numeric" else value
        return f'(CAST({whole} AS text) COLLATE "C")'

    def blob(self, key: str) -> str:
        return f"convert_to({key}, getdatabaseencoding())"

    def text_table(self, columns: Sequence[Sequence[str]], name: str) -> str:
        split = ", ".join(
            f"string_to_array({self.literal(SEPARATOR.join(texts))}, {self.literal(SEPARATOR)})"
            for texts in columns
        )
        names = ", ".join(f"g{i}" for i in range(len(columns)))
        return f"unnest({split}) AS {name}({names})"

    def number(self, value: str, kind: str) -> str:
        """A value as a double; a numeric beyond the doubles is the last of them, or zero."""
        if family(kind) != "numeric":
            return super().number(value, kind)
        clipped = f"greatest(-1e308, least(1e308, {value}))"
        finite = f"{value} NOT IN ('NaN', 'Infinity', '-Infinity')"
        tiny = f"abs({value}) < 1e-300"
        return (
            f"CASE WHEN {finite} THEN CASE WHEN {tiny} THEN CAST(0 AS double precision)"
            f" ELSE CAST({clipped} AS double precision) END END"
        )

    def micros(self, value: str) -> str:
        """Microseconds as a numeric: those of the last years do not fit a bigint."""
        epoch = f"trunc(extract(epoch FROM {value}) * 1000000)"
        return f"CASE WHEN isfinite({value}) THEN {epoch} END"

    def days(self, value: str) -> str:
        return f"CASE WHEN isfinite({value}) THEN {value} - DATE '1970-01-01' END"

    def interval_micros(self, value: str) -> str:
        """Microseconds of an interval; PostgreSQL gives a year 365.25 days."""
        excess = f"extract(year FROM {value}) * 453600"
        return f"((extract(epoch FROM {value}) - {excess}) * 1000000)"

    def canonical(self, unit: str, kind: str) -> str:
        text = super().canonical(unit, kind)
        if family(kind) == self.binary_type:
            text = f"encode({unit}, 'hex')"
        elif family(kind) not in LONG:
            return text
        return f"CASE WHEN octet_length({unit}) < {LONGEST} THEN {text} ELSE md5({unit}) END"

    def start(self, text: str) -> str:
        """A number of 16 bits from a text in the server's encoding, which may be no UTF-8."""
        digits = f"substr(md5({text}), 1, 4)"
        return f"CAST(CAST(CAST('x' || {digits} AS bit(16)) AS integer) AS bigint)"


CONNECT_SECONDS = 10
CANCEL_SECONDS = 3

CHECKS_CLIENT = 140000
"""Server version that can notice by itself that its client was killed."""

_CAUSES: dict[str, Cause] = {
    "57014": "timeout",
    "55P03": "lock",
    "40P01": "lock",
    "42501": "permission",
    "42P01": "table",
    "3D000": "table",
    "57P01": "unreachable",
    "57P02": "unreachable",
    "57P03": "unreachable",
}
_CLASSES: dict[str, Cause] = {"08": "unreachable", "28": "authentication"}
"""Causes by the code of an error, and by its class."""

_TYPES = (
    "SELECT oid::bigint, CASE WHEN typtype = 'e' THEN 'text' ELSE format_type(oid, NULL) END"
    " FROM pg_type WHERE oid = ANY(%s)"
)


_NONDETERMINISTIC = (
    "SELECT attname FROM pg_attribute JOIN pg_collation c ON c.oid = attcollation"
    " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
    " AND NOT collisdeterministic"
)

_SERVER = "SELECT system_identifier FROM pg_control_system()"
"""Chosen when a cluster is made; its replicas share it."""

_ORIGINS = (
    "WITH RECURSIVE tree AS (SELECT to_regclass(%s)::oid AS oid UNION"
    " SELECT inhrelid FROM pg_inherits JOIN tree ON inhparent = tree.oid),"
    " named AS (SELECT (SELECT oid FROM pg_database WHERE datname = current_database()) AS base,"
    " c.oid, nspname, relname FROM tree JOIN pg_class c ON c.oid = tree.oid"
    " JOIN pg_namespace n ON n.oid = relnamespace)"
    " SELECT true, base::text, oid::text FROM named"
    " UNION ALL SELECT true, base::text, nspname || '.' || relname FROM named"
    " UNION ALL SELECT false, current_database(), nspname || '.' || relname FROM named"
)
"""A table, and those that are parts of it, by number and by name; the last for addresses alone."""


_VIEWS = (
    "WITH RECURSIVE reached AS (SELECT to_regclass(%s)::oid AS oid UNION SELECT refobjid"
    " FROM reached JOIN pg_rewrite w ON ev_class = reached.oid"
    " JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid"
    " AND d.refclassid = 'pg_class'::regclass)"
    " SELECT c.oid::regclass::text, pg_get_viewdef(c.oid) FROM reached"
    " JOIN pg_class c ON c.oid = reached.oid WHERE relkind = 'v' ORDER BY 1"
)
"""Views that a relation is, or leads to, and their definitions."""

_UNLIMITED = "-1"
"""Value of `temp_file_limit` that means no limit."""


@dataclass(slots=True)
class PostgresBackend(ServerBackend[str, "psycopg.Connection[Any]"]):
    """Asks a PostgreSQL server; a role that may SELECT from the relation is enough.

    Its address is as libpq reads it, and memory is that of each sort and hash. The session is
    read-only, in UTC, named `streamdp`, and writes dates as ISO does. The server ends a question
    that takes longer than it may, or whose client died. PostgreSQL cannot go on without a record
    that fails an expression, so expressions are made total, or refused.
    """

    name = "PostgreSQL"
    opening_hint = "is the name right, and may this role SELECT from it?"
    reading_hint = "look at the server: was it stopped, or the query cancelled or out of time?"
    unreachable_hint = "is it up, and are host, user, password and database right?"

    def dialect(self) -> PostgresDialect:
        """PostgreSQL's SQL."""
        return PostgresDialect(self._columns)

    def collated(self, columns: Mapping[str, str]) -> list[str]:
        """Columns whose collation calls different texts equal."""
        return [name for (name,) in self.rows(_NONDETERMINISTIC, self.table_name())]

    def table_name(self) -> str:
        """Name of the table in SQL."""
        return self.relation.bare(self.dialect())

    def look_further(self, query: Query, batch: Batch, columns: Mapping[str, str]) -> None:
        """Refuse what may fail on a record, and values that the database has no letters for."""
        import psycopg

        connection = self.connected()
        for each in expressions(query):
            self.dialect().tried(each)
        named = {*self.own_columns(query), *self.relation.named, *columns_of(expressions(query))}
        for what, hint in (*doubts(connection, self.table_name(), named), *shadows(connection)):
            raise SourceError(what, where=self.place(batch), hint=hint, source=batch.source)
        encoding = connection.info.parameter_status("server_encoding")
        if encoding == "UTF8":
            return
        if isinstance(query, KeyQuery):
            if encoding == "SQL_ASCII":
                return  # bytes as they are, which need not be UTF-8
            raise SourceError(
                f"keys cannot be found in source {batch.source}: its database is in {encoding}",
                where=self.place(batch),
                hint="texts of keys come back as UTF-8: read a database whose encoding that is",
                source=batch.source,
            )
        texts = {text for group in query.groups for text in group}
        if not isinstance(query, CellQuery):
            texts.update(text for axis in Scan.of(query).dimensions for text in axis.values or ())
        try:
            connection.execute("SELECT %s::text[]", [sorted(texts)])
        except psycopg.errors.UntranslatableCharacter:
            raise SourceError(
                f"no record of source {batch.source} can have all of the listed groups and values",
                where=self.place(batch),
                hint="the encoding of this database lacks some of their letters: leave those out",
                source=batch.source,
            ) from None

    def notices(self, batch: Batch) -> list[str]:
        """Views that compute, and a limit that a question may reach."""
        with self.session(), self._redacted(batch, "could not be asked", self.opening_hint):
            views = self.rows(_VIEWS, self.table_name())
            ((limit,),) = self.rows("SHOW temp_file_limit")
        found = [notice(view) for view, text in views if computes(text, "postgres")]
        if limit != _UNLIMITED:
            found.append(
                f"temp_file_limit is {limit} for this role: a question that needs more fails, and"
                " its charge is burnt"
            )
        return found

    def origins(self, batch: Batch) -> tuple[str, ...]:
        """The table, its parts, and its name, in the server's own numbers and at its address.

        The address tells a cluster that was upgraded, whose number is new.

        Raises:
            SourceError: The server cannot be asked, or not for its number, without which the same
                table at another address would be other data.
        """
        with self.session(), self._redacted(batch, "could not be asked", self.opening_hint):
            server, known = self._number(batch), self.connected().info
            address = f"{known.host}:{known.port}"
            rows = self.rows(_ORIGINS, self.table_name())
        found = [f"{base}/{which}" for own, base, which in rows if own]
        told = [f"{address}/{base}/{which}" for _, base, which in rows]
        return tuple(f"postgres:{each}" for each in (*(f"{server}/{one}" for one in found), *told))

    def _number(self, batch: Batch) -> str:
        """The number of the cluster.

        Raises:
            SourceError: The role may not ask for it.
        """
        import psycopg

        try:
            ((number,),) = self.rows(_SERVER)
        except psycopg.errors.InsufficientPrivilege:
            raise SourceError(
                f"the role of source {batch.source} may not ask which server this is",
                where=self.place(batch),
                hint="a budget is bound to the server: as a superuser,"
                " GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC",
                source=batch.source,
            ) from None
        return str(number)

    def describe(self, select: str) -> dict[str, str]:
        """Names and types of the columns of a SELECT, which is not run."""
        columns = self.connected().execute(f"{select} LIMIT 0").description or []
        oids = [column.type_code for column in columns]
        kinds = dict(self.rows(_TYPES, oids))
        return {column.name: kinds[column.type_code] for column in columns}

    def run(self, statement: str) -> IntArray:
        """The rows of the answer, sent as binary integers."""
        cursor = self.connected().cursor(binary=True).execute(statement)
        rows = np.array(cursor.fetchall(), dtype=np.int64)
        return rows.reshape(-1, len(cursor.description or ()))

    def failures(self) -> tuple[type[Exception], ...]:
        """All exceptions of psycopg."""
        import psycopg

        return (psycopg.Error,)

    def cause(self, error: Exception) -> Cause | None:
        """Classify by the code of the standard, or where a connection fails by who refused it."""
        state = getattr(error, "sqlstate", None)
        if state is not None:
            return _CAUSES.get(state) or _CLASSES.get(state[:2])
        import psycopg

        if not isinstance(error, psycopg.OperationalError):
            return None
        said = str(error)
        if "FATAL" not in said:
            return "unreachable"
        if 'database "' in said and "does not exist" in said:
            return "table"
        words = ("authentication", "password", "pg_hba", "role ")
        return "authentication" if any(word in said for word in words) else "unreachable"

    def cancel(self) -> None:
        """Cancel the running question at the server."""
        if self._connection is not None:
            with suppress(*self.failures()):
                self._connection.cancel_safe(timeout=CANCEL_SECONDS)

    def hang_up(self, connection: psycopg.Connection[Any]) -> None:
        """Shut the socket down; libpq sees its end."""
        with (
            suppress(OSError, *self.failures()),
            socket.socket(fileno=os.dup(connection.fileno())) as other,
        ):
            other.shutdown(socket.SHUT_RDWR)

    def is_open(self, connection: psycopg.Connection[Any]) -> bool:
        """Whether libpq takes the connection to be open."""
        return not connection.closed

    def ping(self, connection: psycopg.Connection[Any]) -> None:
        """Send the server an empty question."""
        connection.execute("SELECT 1")

    def opened(self) -> psycopg.Connection[Any]:
        """A session that is read-only, in UTC, within the limits."""
        import psycopg

        connection: psycopg.Connection[Any] = psycopg.connect(
            self.address,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            application_name="streamdp",
            prepare_threshold=None,  # a plan that is kept would fail when a column is added
        )
        settings = {"TimeZone": "UTC", "default_transaction_read_only": "on"}
        settings |= {"standard_conforming_strings": "on", "extra_float_digits": "1"}
        settings |= {"lock_timeout": f"{lock_seconds(self.limits, LOCK_SECONDS)}s"}
        settings |= {"client_encoding": "UTF8", "DateStyle": "ISO", "transform_null_equals": "off"}
        if connection.info.server_version >= CHECKS_CLIENT:
            settings["client_connection_check_interval"] = "10s"
        if self.limits.seconds is not None:
            settings["statement_timeout"] = f"{self.limits.seconds}s"
        if self.limits.memory is not None:
            settings["work_mem"] = f"{max(64, self.limits.memory // 1024)}kB"
        for name, value in settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", [name, value])
        return connection


VIRTUAL = 180000
"""Server version from which on columns may be computed as they are read."""

_REACHED = (
    "WITH RECURSIVE reached AS ("
    " SELECT to_regclass(%(table)s)::oid AS oid, 0::int2 AS attnum"
    " UNION SELECT attrelid, attnum FROM pg_attribute"
    " WHERE attrelid = to_regclass(%(table)s) AND attname = ANY(%(named)s)"
    " UNION SELECT below.oid, below.attnum FROM reached JOIN pg_class c ON c.oid = reached.oid,"
    " LATERAL (SELECT refobjid AS oid, refobjsubid::int2 AS attnum FROM pg_rewrite w"
    " JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid"
    " AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> w.ev_class"
    " WHERE w.ev_class = reached.oid AND c.relkind = 'v'"
    " UNION ALL SELECT inhrelid, coalesce(part.attnum, 0::int2) FROM pg_inherits"
    " LEFT JOIN pg_attribute whole ON whole.attrelid = inhparent AND whole.attnum = reached.attnum"
    " AND whole.attnum > 0"
    " LEFT JOIN pg_attribute part ON part.attrelid = inhrelid AND part.attname = whole.attname"
    " WHERE inhparent = reached.oid) AS below)"
)
"""Tables that are read, each with the columns that are named or that a view over it names."""

_FOREIGN = (
    _REACHED + " SELECT DISTINCT c.oid::regclass::text FROM reached"
    " JOIN pg_class c ON c.oid = reached.oid WHERE relkind = 'f' ORDER BY 1"
)

_GENERATED = (
    _REACHED + " SELECT DISTINCT a.attrelid::regclass::text || '.' || attname FROM reached"
    " JOIN pg_attribute a ON a.attrelid = reached.oid AND a.attnum = reached.attnum"
    " WHERE attgenerated = 'v' ORDER BY 1"
)

_POLICIES = (
    _REACHED + " SELECT DISTINCT polrelid::regclass::text, pg_get_expr(polqual, polrelid)"
    " FROM reached JOIN pg_policy ON polrelid = reached.oid"
    " WHERE row_security_active(reached.oid) AND polcmd IN ('r', '*') AND polqual IS NOT NULL"
    " ORDER BY 1, 2"
)

_OTHERS = (
    "SELECT nspname, oid FROM pg_namespace"
    " WHERE nspname = ANY(current_schemas(false)) AND nspname <> 'pg_catalog'"
)

_SHADOWS = (
    f"WITH other AS ({_OTHERS}) SELECT DISTINCT nspname, proname FROM pg_proc p"
    " JOIN other ON other.oid = pronamespace"
    " WHERE EXISTS (SELECT FROM pg_proc own WHERE own.proname = p.proname"
    " AND own.pronamespace = 'pg_catalog'::regnamespace)"
    " AND NOT EXISTS (SELECT FROM unnest(proargtypes) AS a(kind) JOIN pg_type ON oid = kind"
    " WHERE typnamespace <> 'pg_catalog'::regnamespace)"
    " UNION ALL SELECT nspname, oprname FROM pg_operator o JOIN other ON other.oid = oprnamespace"
    " WHERE oprname IN ('=', '<>', '<', '<=', '>', '>=', '+', '-', '*', '/', '%%', '~~')"
    " AND NOT EXISTS (SELECT FROM pg_type WHERE oid IN (oprleft, oprright)"
    " AND typnamespace <> 'pg_catalog'::regnamespace)"
)
"""Functions and operators over PostgreSQL's own types that stand beside its own."""

FUNCTIONS = (
    *("abs", "btrim", "ceil", "ceiling", "concat", "date_part", "date_trunc", "encode", "extract"),
    *("floor", "isfinite", "length", "like", "ln", "lower", "ltrim", "md5", "mod", "octet_length"),
    *("round", "rtrim", "sqrt", "substr", "substring", "sum", "count", "trim_scale", "trunc"),
    *("upper", "row_number", "timezone"),
)
"""Functions that questions and expressions call."""

_PLAIN = (
    *("Column", "Identifier", "Paren", "And", "Or", "Not", "EQ", "NEQ", "GT", "GTE", "LT", "LTE"),
    *("Is", "Null", "Boolean", "Literal", "In", "Between", "NullSafeEQ", "NullSafeNEQ", "Tuple"),
    *("DataType", "DataTypeParam"),
)
"""Classes of sqlglot that a policy may use: none of them can fail."""


class Doubt(NamedTuple):
    """A part of a table that may fail on a record, and what to do about it."""

    what: str
    hint: str


def doubts(
    connection: psycopg.Connection[Any], table: str, named: Collection[str]
) -> Iterator[Doubt]:
    """Parts of a table that a question about some of its columns may fail on.

    Args:
        connection: To the server.
        table: Its name in SQL.
        named: Columns.
    """
    asked = {"table": table, "named": list(named)}
    for (foreign,) in connection.execute(_FOREIGN, asked):
        yield Doubt(
            f"{foreign} is a foreign table: another server may fail on a record",
            "read that server itself, or copy the records into a table here",
        )
    if connection.info.server_version >= VIRTUAL:
        for (column,) in connection.execute(_GENERATED, asked):
            yield Doubt(
                f"{column} is computed as it is read, and one record may fail it",
                "make it a column that is STORED: its failure is that of who writes the record",
            )
    for name, condition in connection.execute(_POLICIES, asked):
        if not _is_plain(condition):
            yield Doubt(
                f"the policy for rows of {name} computes with a column: one record may fail it",
                "compare columns with constants in policies, without casts and functions",
            )


def shadows(connection: psycopg.Connection[Any]) -> Iterator[Doubt]:
    """Functions and operators that PostgreSQL would call in place of its own."""
    for schema, name in connection.execute(_SHADOWS, {}):
        if not re.fullmatch(r"\w+", name) or name in FUNCTIONS:
            yield Doubt(
                f"{schema}.{name} may be called in place of PostgreSQL's own {name}",
                f"give the role a search path without it: ALTER ROLE … SET search_path = …, or"
                f" drop it from schema {schema}",
            )


def columns_of(expressions: Iterable[str]) -> set[str]:
    """Columns that expressions name."""
    import sqlglot
    from sqlglot import exp

    found: set[str] = set()
    for text in expressions:
        with suppress(sqlglot.errors.SqlglotError):  # the server refuses it by itself
            tree = sqlglot.parse_one(text, read="postgres")
            found |= {column.name for column in tree.find_all(exp.Column)}
    return found


def _is_plain(condition: str) -> bool:
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(condition, read="postgres")
    except sqlglot.errors.SqlglotError:
        return False
    for node in tree.walk():
        as_text = isinstance(node, exp.Cast) and node.is_type("text", "varchar")
        plain = type(node).__name__ in _PLAIN or as_text
        if isinstance(node, exp.Query) or (not plain and node.find(exp.Column)):
            return False
    return True
