"""DuckDB: files read where they lie, or a table of a DuckDB database; the embedded default.

Types of conditions are looked at before a question. DuckDB casts what stands as a condition: a text
by its spelling, a number by whether it is zero. The cast fails for other values, and a condition
that is neither true nor false is a mistake.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streamdp.backends.duckdb.dialect import CAST, ENDS, NANO_ENDS, NANOSECONDS, DuckDBDialect
from streamdp.backends.duckdb.files import VIEW, Files, columns_named
from streamdp.backends.duckdb.instance import Instance
from streamdp.backends.duckdb.lines import LINE_MEMORY
from streamdp.backends.duckdb.parquet import PartitionColumn, memory_of
from streamdp.backends.limits import NO_LIMITS, Limits
from streamdp.backends.sql.dialect import quoted
from streamdp.backends.sql.engine import SqlBackend, expressions, listed
from streamdp.backends.sql.relation import Relation, beneath, computes, notice
from streamdp.backends.sql.scan import Field
from streamdp.errors import SourceError
from streamdp.files import file_at, nearest, resolve
from streamdp.types import Batch, File, Format, IntArray, Query

if TYPE_CHECKING:
    import duckdb
    from sqlglot.expressions import Expr


_SQLITE = b"SQLite format 3\0"

DATABASE = "records"
"""Name of a database that is attached. DuckDB's own functions are found before its macros, which
may be called like them and look at other records."""

_TABLES = (
    "SELECT lower(table_schema), lower(table_name) FROM information_schema.tables"
    f" WHERE table_catalog = '{DATABASE}' AND lower(table_name) = ?"
)

_ALL_TABLES = (
    "SELECT lower(table_schema), lower(table_name) FROM information_schema.tables"
    f" WHERE table_catalog = '{DATABASE}'"
)

_VIEWS = (
    f"SELECT lower(view_name), sql FROM duckdb_views() WHERE database_name = '{DATABASE}'"
    " AND NOT internal"
)


@dataclass(slots=True)
class DuckDBBackend(SqlBackend):
    """Reads files or a database with DuckDB; the rows never enter Python.

    A connection belongs to one thread: make a backend where it is used. A database file is opened
    for reading while a question is asked and closed after it, so that others can write.

    Args:
        path: File or glob of a source cut by time, or a database file; a batch that is a file
            brings its own.
        format: Of the files.
        time_column: Column whose UTC value puts a record in a window; None for files as batches.
        limits: Memory, time and threads of one question.
        relation: Table or query of a database file.
        types: Declared types of columns of CSV and JSON lines; others are text.
        quoted_newlines: Whether line ends in quotes of CSV are text.
        instance: Shared with others of the same limits; by default one of its own.
    """

    path: str
    format: Format | Literal["duckdb"]
    time_column: str | None = None
    limits: Limits = NO_LIMITS
    relation: Relation | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    quoted_newlines: bool = False
    instance: Instance | None = None
    _connection: duckdb.DuckDBPyConnection | None = field(default=None, init=False, repr=False)
    _files: Files | None = field(default=None, init=False, repr=False)
    _read: object = field(default=None, init=False, repr=False)
    _looked: object = field(default=None, init=False, repr=False)
    _names: dict[str, list[str]] = field(default_factory=dict, init=False, repr=False)
    _known: dict[str, dict[str, str]] = field(default_factory=dict, init=False, repr=False)
    _comparable: set[tuple[str, str]] = field(default_factory=set, init=False, repr=False)

    opening_hint = "is it there, complete, readable, and of the configured format?"
    reading_hint = "look at the engine's memory and at whether files change while being read"

    def __post_init__(self) -> None:
        if self.format != "duckdb":
            self._files = Files(self.format, self.types, quoted_newlines=self.quoted_newlines)
        elif self.relation is not None and self.relation.table:
            self.relation = replace(self.relation, table=_in_database(self.relation.table))

    @contextmanager
    def session(self) -> Iterator[None]:
        """Attach the database file while a question is asked."""
        instance = self._renew()
        try:
            with self._attached():
                yield
        except BaseException:
            instance.doubt()
            raise

    @contextmanager
    def _attached(self) -> Iterator[None]:
        if self.format != "duckdb":
            yield
            return
        connection = self._connect()
        try:
            connection.execute(f"ATTACH {quoted(self.path, chr(39))} AS {DATABASE} (READ_ONLY)")
            connection.execute(f"SET search_path = 'memory.main,system.main,{DATABASE}.main'")
        except self.failures():
            raise _not_opened(self.path) from None
        try:
            yield
        finally:
            connection.execute("USE memory")
            connection.execute(f"DETACH {DATABASE}")

    def dialect(self) -> DuckDBDialect:
        """DuckDB's SQL."""
        return DuckDBDialect()

    def table(self, query: Query, batch: Batch) -> str:
        """The view of the files, or the table."""
        if self._files is None:
            return self.relation_sql(self.relation or Relation())
        files, named = self._files_of(batch), self.named(query)
        unit = None if query.bound is None else query.bound.column
        inside = [name for each in expressions(query) for name in self.named_in(each)]
        if (files, named, unit, inside) != self._read:
            self._known.clear()
        self._read = files, named, unit, inside
        partitions = self._partitions(files)
        return self._files.view(self._connect(), files, named, unit, inside, partitions)

    def _partitions(self, files: Sequence[File]) -> Mapping[str, PartitionColumn] | None:
        """Partition columns by a table's log; None where folders tell them."""
        return None

    def _files_of(self, batch: Batch) -> tuple[File, ...]:
        """Files that the source found, still the same; without a source, those of the path.

        Raises:
            SourceError: There are none, or one was put in the place of another.
        """
        files = batch.files or resolve(glob.escape(batch.path) if batch.path else self.path)
        if not files:
            raise SourceError("there is no file", where=self.place(batch), hint=nearest(self.path))
        now = tuple(file_at(file.path) for file in files)
        for file, found in zip(files, now, strict=True):
            if found is None or found.id != file.id:
                raise SourceError(
                    "a file is gone, or another is in its place",
                    where=file.path,
                    hint="leave files where they are while they are read",
                )
        return tuple(filter(None, now))

    def one_by_one(self, columns: Mapping[str, str]) -> dict[str, str]:
        """Return the expressions to read one by one: those of SQL, wide decimals, invalid times.

        Times are those that a query names, or that any use would cast.
        """
        relation = self.relation or Relation()
        named = [each.sql for each in relation.columns if not each.source]
        named += [] if relation.where is None else [relation.where]
        dialect = self.dialect()
        decimals = {
            name: sql
            for name, kind in columns.items()
            if (sql := dialect.plain_decimal(dialect.name(name), kind)) is not None
        }
        read = SqlBackend.one_by_one(self, columns) | decimals
        return read | self._plain_times(columns, named)

    def read(self, query: Query, table: str, within: str) -> tuple[str, str]:
        """Times that expressions name are null where they are none; the window is looked at first.

        A file may hold numbers of microseconds that are no time. DuckDB takes them for times that
        it cannot cast, and ends what it does with an internal error, which TRY does not hold.
        """
        named = expressions(query)
        columns = self.describe(f"SELECT * FROM {table}") if named else {}
        plain = self._plain_times(columns, named)
        if not plain:
            return table, within
        made = ", ".join(f"{sql} AS {quoted(name, chr(34))}" for name, sql in plain.items())
        records = f"SELECT * REPLACE ({made}) FROM {table} WHERE {within}"
        return f"({records}) AS plain", "true"

    def _plain_times(self, columns: Mapping[str, str], named: list[str]) -> dict[str, str]:
        """SQL of the columns that expressions name and whose values may be no times."""
        dialect = self.dialect()
        return {
            name: dialect.plain_time(dialect.name(name), kind)
            for name, kind in columns.items()
            if kind in CAST
            or (kind in (*ENDS, NANOSECONDS) and any(dialect.name(name) in each for each in named))
        }

    def _within(self, batch: Batch, kinds: Mapping[str, str]) -> str:
        """The condition of a window; of nanoseconds no window ends beyond the last of them."""
        ends = (batch.start, batch.end)
        if kinds.get("time") == NANOSECONDS and None not in ends:
            first, last = NANO_ENDS
            start, end = (max(first, min(last, each)) for each in ends if each is not None)
            batch = replace(batch, start=start, end=end)
        return SqlBackend._within(self, batch, kinds)

    def look_at_conditions(
        self, where: str | None, expressions: Iterable[str], table: str, source: str
    ) -> None:
        """Refuse a condition that is not true or false, by its type, and constants of no type.

        Raises:
            SourceError: One is text, a number or a time, or a constant has no value of the type
                that it is compared with: no record would count.
        """
        expressions = list(expressions)
        pairs = comparisons([*([] if where is None else [where]), *expressions])
        wanted = conditions(where, expressions)
        parts = [*(sql for sql, _ in pairs), *wanted]
        if parts:
            named = ", ".join(f"({sql}) AS c{i}" for i, sql in enumerate(parts))
            kinds = list(self.describe(f"SELECT {named} FROM {table}").values())
            self._require_comparable(pairs, kinds[: len(pairs)], source)
            require_conditions(dict(zip(wanted, kinds[len(pairs) :], strict=True)), source)

    def _require_comparable(
        self, pairs: Sequence[tuple[str, str]], described: Sequence[str], source: str
    ) -> None:
        """Refuse a constant that DuckDB cannot cast to the type of what it is compared with.

        Within TRY it would be null for every record, and none would count, without a word.
        """
        kinds = ["TIMESTAMP" if kind == NANOSECONDS else kind for kind in described]
        asked = [(kind, constant) for kind, (_, constant) in zip(kinds, pairs, strict=True)]
        if self._comparable.issuperset(asked) or self._are_comparable(asked):
            self._comparable.update(asked)
            return
        for (sql, constant), kind in zip(pairs, kinds, strict=True):
            if not self._are_comparable([(kind, constant)]):
                raise SourceError(
                    f"a constant for source {source} is compared with a {kind}, and is none",
                    where=f"{sql} / {constant}",
                    hint="write it as it is read, a time as '2024-12-31 23:59:59'",
                    source=source,
                )

    def _are_comparable(self, asked: Sequence[tuple[str, str]]) -> bool:
        """Whether no constant fails beside a null of the type, which is asked of no record."""
        import duckdb

        nulls = ", ".join(f"CAST(NULL AS {kind})" for kind, _ in asked)
        names = ", ".join(f"x{i}" for i in range(len(asked)))
        compared = (f"x{i} IS DISTINCT FROM ({each})" for i, (_, each) in enumerate(asked))
        select = f"SELECT {', '.join(compared)} FROM (VALUES ({nulls})) AS one({names})"
        try:
            self._connect().execute(select).fetchall()
        except (duckdb.ConversionException, duckdb.OutOfRangeException):
            return False
        except duckdb.Error:
            return True  # what DuckDB cannot understand is told of the whole expression
        return True

    def collated(self, columns: Mapping[str, str]) -> list[str]:
        """Columns that may have a collation: all texts, since DuckDB does not say which."""
        return [name for name, kind in columns.items() if kind == "VARCHAR"]

    def origins(self, batch: Batch) -> tuple[str, ...]:
        """A table as its database calls it; files are known by the batch.

        Raises:
            SourceError: The database cannot be opened.
        """
        file = file_at(self.path) if self._files is None else None
        if file is None or self.relation is None:
            return ()
        with self.session():
            found = self._connect().execute(_TABLES, self.relation.table.lower().split(".")[-1:])
            named = [f"{schema}.{name}" for schema, name in found.fetchall()]
        wanted = self.relation.table.lower().split(".")[-2:]
        suffix = ".".join(wanted) if len(wanted) > 1 else f"main.{wanted[0]}"
        chosen = [name for name in named if name == suffix] or named
        return tuple(f"{file.id}#{name}" for name in chosen)

    def beside(self, batch: Batch) -> tuple[str, ...]:
        """The database file, and all tables that are in it now; nothing of other files.

        Raises:
            SourceError: The database cannot be opened.
        """
        file = file_at(self.path) if self._files is None else None
        if file is None:
            return ()
        with self.session():
            found = self._connect().execute(_ALL_TABLES).fetchall()
        return (file.id, *(f"{file.id}#{schema}.{name}" for schema, name in found))

    def notices(self, batch: Batch) -> list[str]:
        """Views of the database that compute, and less memory than a line of JSON may take."""
        if self._files is not None:
            return self._short_of_memory() if self.format == "jsonl" else []
        with self.session(), self._redacted(batch, "could not be asked", self.opening_hint):
            made = dict(self._connect().execute(_VIEWS).fetchall())
        table = (self.relation or Relation()).bare(self.dialect())
        names = beneath(f"SELECT * FROM {table}", made, "duckdb")
        return [notice(name) for name in names if computes(made[name], "duckdb")]

    def _short_of_memory(self) -> list[str]:
        connection = self._connect()
        ((threads,),) = connection.execute("SELECT current_setting('threads')").fetchall()
        needed, memory = LINE_MEMORY * int(threads), memory_of(connection)
        if memory >= needed:
            return []
        return [
            f"lines of JSON may take {needed // 10**6} MB in {threads} threads, and the engine has"
            f" {memory // 10**6}: with less, one record can burn the charge; give it more"
            " engine.memory, or fewer engine.threads"
        ]

    def type_hint(self, source: str, field: Field) -> str:
        """Hint to declare the types of text formats."""
        if self.format not in ("csv", "jsonl"):
            return SqlBackend.type_hint(self, source, field)
        typed = f"{field.column}: {'timestamp' if field.role == 'time' else 'number'}"
        return f"if it holds what is wanted, say so: sources.{source}.types: {{{typed}}}"

    def columns_hint(self, query: Query, columns: Mapping[str, str]) -> str:
        """Columns there are; of a CSV file only if its first line is a header and no record."""
        return self.shown_columns(self.named(query), columns)

    def shown_columns(self, asked: Iterable[str], columns: Iterable[str]) -> str:
        """Columns in words; of a CSV file only if its first line names one that is asked for.

        Privacy: a line that names none of them may be a record, and is not shown.
        """
        there = tuple(columns) if self._files is None else self._files.columns() or tuple(columns)
        wanted = {name.strip().lower() for name in asked}
        if self.format != "csv" or wanted & {name.strip().lower() for name in there}:
            return listed(there)
        return "the first line of a CSV file names its columns, and holds none of the configured"

    def _unread(self) -> tuple[str, str]:
        """Message and hint: a database that was opened lacks the table."""
        if self._files is None and self.relation is not None and not self.relation.is_made():
            named = self.relation.table.removeprefix(f"{DATABASE}.").removeprefix("main.")
            return "cannot be opened", f"is there a table or view {named!r} in it?"
        return SqlBackend._unread(self)

    def place(self, batch: Batch) -> str:
        """The path or pattern of the source."""
        return batch.path or self.path

    def describe(self, select: str) -> dict[str, str]:
        """Names and types; of files that are as they were, what was found when first asked."""
        if select in self._known:
            return self._known[select]
        found = self._connect().sql(select)
        kinds = dict(zip(found.columns, map(str, found.types), strict=True))
        if self._files is not None:
            self._known[select] = kinds
        return kinds

    def look_further(self, query: Query, batch: Batch, columns: Mapping[str, str]) -> None:
        """Read one record of Parquet files, since a damaged footer may fit its file; of each once.

        Privacy: no record can make the reading fail, so this fails for no record.
        """
        if self.format == "parquet" and self.named(query) and self._looked != self._read:
            counted = ", ".join(f"count({quoted(name, chr(34))})" for name in columns)
            self._connect().execute(f"SELECT {counted} FROM (FROM {VIEW} LIMIT 1)").fetchall()
            self._looked = self._read

    def run(self, statement: str) -> IntArray:
        """The rows of the answer, by column as the engine holds them."""
        arrays = self._connect().execute(statement).fetchnumpy()
        columns = [np.asarray(column, dtype=np.int64) for column in arrays.values()]
        return np.column_stack(columns)

    def fetched(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a SELECT."""
        return self._connect().execute(statement).fetchall()

    def whole_table(self, query: Query, batch: Batch) -> str:
        """The table with all columns; a view of text files has those alone that are named."""
        table = self.table(query, batch)
        every = [] if self._files is None else list(self._files.columns())
        if self._files is None or not every or self.format == "parquet":
            return table
        self._known.clear()
        self._read = None
        return self._files.view(self._connect(), self._files_of(batch), every)

    def interrupt(self) -> None:
        """Interrupt the running question."""
        connection = self._connection
        if connection is not None:
            connection.interrupt()

    def named_in(self, expression: str) -> list[str]:
        """Columns an expression names, by DuckDB's parser."""
        if expression not in self._names:
            self._names[expression] = columns_named(self._connect(), expression)
        return self._names[expression]

    def failures(self) -> tuple[type[Exception], ...]:
        """All exceptions of DuckDB."""
        import duckdb

        return (duckdb.Error,)

    def close(self) -> None:
        """Close the connection now, so that no forked process closes it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self.instance is not None:
            self.instance.close()

    def _connect(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            self._renew()
        assert self._connection is not None  # noqa: S101
        return self._connection

    def _renew(self) -> Instance:
        """Reconnect if the connection is broken; a new one has none of the views."""
        self.instance = self.instance or Instance(self.limits)
        connection = self.instance.connection(self._connection)
        if connection is not self._connection:
            self._connection = connection
            self._known.clear()
            self.__post_init__()
        return self.instance


def _in_database(table: str) -> str:
    """Name of a table with the name of its database before it."""
    parts = table.split(".")
    return table if len(parts) > 2 else ".".join([DATABASE, *(["main"] * (2 - len(parts))), *parts])


def _not_opened(path: str) -> SourceError:
    """The error for a database file that DuckDB does not open."""
    hint = "is it there and readable, and does no other process write to it now?"
    with suppress(OSError), open(path, "rb") as file:
        if file.read(len(_SQLITE)) == _SQLITE:
            hint = "it is an SQLite file: copy its table to a Parquet or CSV file, or into DuckDB"
    return SourceError("a DuckDB database cannot be opened", where=path, hint=hint)


_TRUTH = ("BOOLEAN", '"NULL"')

_COMPARISONS = ("EQ", "NEQ", "GT", "GTE", "LT", "LTE", "NullSafeEQ", "NullSafeNEQ", "Is", "Between")
_DECIDED = frozenset((*_COMPARISONS, "In", "Like", "And", "Or", "Not", "Boolean", "Null"))
"""Names of sqlglot's classes that are true, false or null whatever stands in them."""


def conditions(where: str | None, expressions: Iterable[str]) -> list[str]:
    """SQL of the parts whose types decide whether they are conditions, once each.

    Args:
        where: A condition.
        expressions: That may hold some, in DuckDB's dialect.
    """
    found = [] if where is None else list(_within(where, whole=True))
    for each in expressions:
        found += _within(each, whole=False)
    return list(dict.fromkeys(found))


def comparisons(texts: Iterable[str]) -> list[tuple[str, str]]:
    """SQL of what is compared with a constant, and of the constant, once each.

    Args:
        texts: Expressions in DuckDB's dialect.
    """
    return list(dict.fromkeys(pair for each in texts for pair in _compared(each)))


@lru_cache(maxsize=4096)
def _compared(text: str) -> tuple[tuple[str, str], ...]:
    import sqlglot
    from sqlglot import exp

    found = []
    for node in sqlglot.parse_one(text, read="duckdb").walk():
        if type(node).__name__ not in (*_COMPARISONS, "In") or isinstance(node, exp.Is):
            continue
        rest = ("expression", "expressions", "low", "high")
        parts = [node.this, *(part for name in rest for part in _listed(node.args.get(name)))]
        texts = {True: list[str](), False: list[str]()}
        for part in parts:
            texts[part.find(exp.Column) is None].append(part.sql("duckdb", identify=True))
        found += [(sql, constant) for sql in texts[False] for constant in texts[True]]
    return tuple(found)


def _listed(part: Any) -> list[Any]:
    return part if isinstance(part, list) else [] if part is None else [part]


def require_conditions(kinds: Mapping[str, str], source: str) -> None:
    """Refuse a condition that is not true or false.

    Args:
        kinds: Types by SQL.
        source: Name of the source.

    Raises:
        SourceError: One has another type.
    """
    for sql, kind in kinds.items():
        if kind not in _TRUTH:
            raise SourceError(
                f"a condition for source {source} has type {kind}, wanted is true or false",
                where=sql,
                hint=_hint(sql, kind),
                source=source,
            )


def _hint(sql: str, kind: str) -> str:
    if kind == "VARCHAR":
        return f"compare it, as in {sql} = 'yes', or write CAST({sql} AS BOOLEAN)"
    if kind.startswith(("DATE", "TIME", "INTERVAL")):
        return f"compare it, as in {sql} IS NOT NULL"
    return f"compare it, as in {sql} <> 0"


@lru_cache(maxsize=4096)
def _within(sql: str, *, whole: bool) -> tuple[str, ...]:
    import sqlglot

    tree = sqlglot.parse_one(sql, read="duckdb")
    parts = [tree] if whole else []
    parts += [each for node in tree.walk() for each in _operands(node)]
    open_ = (part.unnest() for part in parts)
    return tuple(
        part.sql("duckdb", identify=True) for part in open_ if type(part).__name__ not in _DECIDED
    )


def _operands(node: Expr) -> Iterator[Expr]:
    """Parts of a node that are read as true or false."""
    from sqlglot import exp

    if isinstance(node, exp.And | exp.Or):
        yield node.this
        yield node.expression
    elif isinstance(node, exp.Not):
        yield node.this
    elif isinstance(node, exp.Case) and node.this is None:
        yield from (each.this for each in node.args["ifs"])
