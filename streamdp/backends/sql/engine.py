"""Base of all SQL engines: look at types, ask one question, say what failed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, date, datetime
from typing import Any

from streamdp.backends.limits import AFTER_THE_CHARGE, CAUSES, Cause, Limits, ended_after
from streamdp.backends.sql.dialect import SqlDialect
from streamdp.backends.sql.question import KeyQuestion, question_of
from streamdp.backends.sql.relation import Relation, one_by_one
from streamdp.backends.sql.scan import CONDITION_HINT, Field, fields_of, require_kinds
from streamdp.errors import MissingColumnError, SourceError
from streamdp.types import RECORD, Batch, IntArray, Query, Statistic

_EPOCH = date(1970, 1, 1).toordinal()

_QUERY_HINT = "look at its expressions and their types: each is SQL over the columns of one record"


class SqlBackend(ABC):
    """A backend of one engine: says how to open it, describe a SELECT, and run one.

    The engine's own exceptions are replaced on every path: their texts quote rows.
    """

    __slots__ = ()

    time_column: str | None
    """Column whose UTC value puts a record in a window; None for files as batches."""

    relation: Relation | None
    """Table or query; None for files."""

    limits: Limits
    """Limits of one question."""

    slack: float = 0.0
    """Seconds beyond the limit in which a server may end a question by itself."""

    opening_hint: str = "is it there, and may this user read it?"
    reading_hint: str = "look at the engine: was it stopped, out of memory or out of time?"

    def check(self, query: Query, batch: Batch) -> None:
        """Look at names and types of the columns.

        Raises:
            SourceError: The source cannot be opened, a column is missing or of another type, or
                an expression cannot be understood.
        """
        with self._in_time(batch, "cannot be opened"), self.session():
            self._look_beneath(batch)
            with self._redacted(batch, *self._unread()):
                table = self.table(query, batch)
                columns = self.describe(f"SELECT * FROM {table}")
            for name in self.own_columns(query):
                if name not in columns:
                    raise _no_column(name, self.columns_hint(query, columns), batch.source)
            with self._redacted(batch, "cannot be opened", self.opening_hint):
                self.look_further(query, batch, columns)
            kinds = self._kinds(query, table, columns, batch)
            self.look_at_conditions(query.where, expressions(query), table, batch.source)
        if self.time_column is not None:
            kinds |= {"time": columns[self.time_column]}
        require_kinds(self.dialect(), query, self.time_column, kinds, batch.source, self.type_hint)

    def _look_beneath(self, batch: Batch) -> None:
        """Require that the columns a query names are in its table.

        A name that no column has could mean something else to the engine: PostgreSQL would call a
        function of it.
        """
        relation = self.relation
        if relation is None or not relation.is_made():
            return
        with self._redacted(batch, "cannot be opened", self.opening_hint):
            columns = self.describe(f"SELECT * FROM {relation.bare(self.dialect())} AS relation")
        for name in relation.named:
            if name not in columns:
                raise _no_column(name, listed(columns), batch.source)
        rows = f"{relation.bare(self.dialect())} AS {self.dialect().name(RECORD)}"
        made = [each.sql for each in relation.columns if not each.source]
        self.look_at_conditions(relation.where, made, rows, batch.source)

    def _unread(self) -> tuple[str, str]:
        """Message and hint where the engine cannot say which columns there are."""
        if self.relation is None or not self.relation.is_made():
            return "cannot be opened", self.opening_hint
        return "has a query that its engine cannot understand", _QUERY_HINT

    def answer(self, query: Query, batch: Batch) -> Any:
        """The statistic that answers a question, or one for each of its groups, from one scan.

        Privacy: one record adds one to one cell of each table of one group, or nothing where its
        value has no cell, and its clipped summand to each sum of that group, or nothing if its
        value is null, NaN, infinite or (in text formats) no number. It counts nowhere if its group
        is none of the public ones or the condition is not true of it. With a unit bound of k, one
        unit has at most k records that count, the same ones in all parts of the question. Of a
        question of keys it adds one to the numbers of at most k keys (`sql.question`).

        Raises:
            SourceError: The engine failed; its own message is dropped, since it quotes rows.
        """
        unread = "could not be read"
        with (
            self._in_time(batch, unread),
            self.session(),
            self._redacted(batch, unread, self.reading_hint, AFTER_THE_CHARGE),
        ):
            table = self.table(query, batch)
            kinds = self._described(query, table)
            read, within = self.read(query, table, self._within(batch, kinds))
            asked = question_of(self.dialect(), query, kinds, read, within)
            found: tuple[Statistic, ...]
            if isinstance(asked, KeyQuestion):
                found = asked.answers(self.fetched(asked.sql()))
            else:
                found = asked.answers(self.run(asked.sql()))
        return found if query.by else found[0]

    def columns_of(self, query: Query, batch: Batch) -> dict[str, str]:
        """Names and types of the columns of a batch.

        Raises:
            SourceError: They cannot be read.
        """
        with self.session(), self._redacted(batch, "cannot be opened", self.opening_hint):
            return self.describe(f"SELECT * FROM {self.whole_table(query, batch)}")

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
            self._redacted(batch, unread, self.reading_hint),
        ):
            table = self.whole_table(query, batch)
            within = self._within(batch, self._described(query, table))
            return self.fetched(f"WITH records AS (SELECT * FROM {table} WHERE {within}) {select}")

    def whole_table(self, query: Query, batch: Batch) -> str:
        """SQL behind FROM, of a table with all columns."""
        return self.table(query, batch)

    @abstractmethod
    def dialect(self) -> SqlDialect:
        """Parts of SQL that this engine writes in its own way."""

    @abstractmethod
    def table(self, query: Query, batch: Batch) -> str:
        """SQL behind FROM."""

    @abstractmethod
    def describe(self, select: str) -> dict[str, str]:
        """Names and types of the columns of a SELECT, without running it."""

    @abstractmethod
    def run(self, statement: str) -> IntArray:
        """The rows of the answer, integers all, in any order."""

    @abstractmethod
    def fetched(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a SELECT, as the library gives them."""

    @abstractmethod
    def failures(self) -> tuple[type[Exception], ...]:
        """Exceptions that the engine raises."""

    def moment(self, at: datetime) -> str:
        """A literal of an instant in UTC, the time zone of sessions, to compare times with."""
        return f"TIMESTAMP '{at:%Y-%m-%d %H:%M:%S}'"

    def interrupt(self) -> None:
        """End the running question with an error; called from another thread."""
        return

    def cause(self, error: Exception) -> Cause | None:
        """Why the engine failed, where that follows from its state alone and from no record."""
        return None

    def collated(self, columns: Mapping[str, str]) -> Collection[str]:
        """Columns of the relation's table that may be compared otherwise than by their bytes."""
        return ()

    def bytewise(self, columns: Mapping[str, str]) -> Mapping[str, str]:
        """SQL of these columns by which they are compared by their bytes."""
        dialect = self.dialect()
        return {name: dialect.bytewise(name) for name in self.collated(columns)}

    def relation_sql(self, relation: Relation) -> str:
        """A relation whose columns are compared byte by byte and record by record."""
        dialect = self.dialect()
        columns = self.describe(f"SELECT * FROM {relation.bare(dialect)} AS relation")
        read = {**self.one_by_one(columns), **self.bytewise(columns)}
        return relation.sql(dialect, columns, read)

    def one_by_one(self, columns: Mapping[str, str]) -> dict[str, str]:
        """SQL that reads columns which an engine would skip by statistics of files."""
        return one_by_one(self.dialect(), columns)

    def read(self, query: Query, table: str, within: str) -> tuple[str, str]:
        """SQL behind FROM and behind WHERE; values that an engine fails at are made plain.

        Args:
            query: Whose expressions name columns.
            table: What stands behind FROM.
            within: Condition that a record belongs to the batch.
        """
        return table, within

    def type_hint(self, source: str, field: Field) -> str:
        """Hint about a column of another type than its part takes."""
        return "name another column, or cast it in an expression"

    def columns_hint(self, query: Query, columns: Mapping[str, str]) -> str:
        """Hint about a column that is not there."""
        return listed(columns)

    def session(self) -> AbstractContextManager[object]:
        """Context that is open while a question is asked; it raises errors of its own."""
        return nullcontext()

    def look_further(self, query: Query, batch: Batch, columns: Mapping[str, str]) -> None:
        """Refuse anything else before a charge is spent."""
        return

    def notices(self, batch: Batch) -> list[str]:
        """Warnings about a source, which are no reason to refuse it.

        Privacy: catalogs are asked, and no rows.

        Raises:
            SourceError: The source cannot be asked.
        """
        return []

    def look_at_conditions(
        self, where: str | None, expressions: Iterable[str], table: str, source: str
    ) -> None:
        """Refuse a condition that is not true or false, where the engine would cast it.

        Args:
            where: Of the records.
            expressions: That may hold others.
            table: What stands behind FROM.
            source: Name of the source.
        """
        return

    def named_in(self, expression: str) -> list[str]:
        """Columns that an expression names, as far as the engine tells."""
        return []

    def time(self) -> str:
        """SQL of the time of a record."""
        return self.dialect().name(self.time_column or "")

    def own_columns(self, query: Query) -> list[str]:
        """Columns that the configuration names outside of expressions."""
        named = [field.column for field in fields_of(query) if field.expression is None]
        return [*named, *([self.time_column] if self.time_column else [])]

    def named(self, query: Query) -> list[str]:
        """All columns that are named, once each."""
        inside = [name for each in expressions(query) for name in self.named_in(each)]
        return list(dict.fromkeys([*self.own_columns(query), *inside]))

    def _within(self, batch: Batch, kinds: Mapping[str, str]) -> str:
        """The condition of a window; dates count by the clocks of the source's time zone.

        A date is compared with the first date that is not before the instant, not cast to an
        instant: there are dates that have none.
        """
        if self.time_column is None or batch.start is None or batch.end is None:
            return "true"
        ends = (batch.start, batch.end)
        if kinds["time"].lower() == "date":
            days = (-(-seconds // 86_400) for seconds in batch.wall or ends)
            start, end = (f"DATE '{date.fromordinal(_EPOCH + day)}'" for day in days)
        else:
            start, end = (self.moment(datetime.fromtimestamp(seconds, UTC)) for seconds in ends)
        return f"{self.time()} >= {start} AND {self.time()} < {end}"

    def _described(self, query: Query, table: str) -> dict[str, str]:
        """Types of what is asked, and of the time of a record; the condition is parsed with it."""
        dialect = self.dialect()
        parts = [f"{field.sql(dialect)} AS {field.alias}" for field in fields_of(query)]
        parts += [f"{self.time()} AS time"] if self.time_column else []
        where = "true" if query.where is None else dialect.tried(query.where)
        return self.describe(f"SELECT {', '.join(parts) or 1} FROM {table} WHERE ({where})")

    def _kinds(
        self, query: Query, table: str, columns: Mapping[str, str], batch: Batch
    ) -> dict[str, str]:
        try:
            return self._described(query, table)
        except self.failures() as error:
            self._require_no_cause(error, batch)
            missing = [name for name in self.named(query) if name not in columns]
            if missing:
                hint = self.columns_hint(query, columns)
                raise _no_column(missing[0], hint, batch.source) from None
            raise SourceError(
                f"an expression for source {batch.source} cannot be understood by its engine",
                where=" / ".join(expressions(query)),
                hint="write one SQL expression over the columns of one record; " + CONDITION_HINT,
                source=batch.source,
            ) from None

    def _require_no_cause(self, error: Exception, batch: Batch) -> None:
        """Raise the error of a failure that is not the expressions'."""
        cause = self.cause(error)
        if cause in ("timeout", "lock", "unreachable", "permission"):
            what = f"source {batch.source} cannot be opened"
            raise CAUSES[cause].error(what, self.place(batch), batch.source) from None

    @contextmanager
    def _in_time(self, batch: Batch, what: str) -> Iterator[None]:
        """Interrupt a question that takes longer than it may, and say so."""
        seconds = self.limits.seconds
        longest = None if seconds is None else seconds + self.slack
        with ended_after(longest, self.interrupt) as late:
            try:
                yield
            except SourceError:
                if not late.is_set():
                    raise
                what = f"source {batch.source} {what}"
                raise CAUSES["timeout"].error(what, self.place(batch), batch.source) from None

    @contextmanager
    def _redacted(
        self, batch: Batch, what: str, hint: str, told: Collection[Cause] = tuple(CAUSES)
    ) -> Iterator[None]:
        """Replace errors of the engine, whose texts quote rows, by one that tells their cause."""
        try:
            yield
        except self.failures() as error:
            cause = self.cause(error)
            if cause is not None and cause in told:
                what = f"source {batch.source} {what}"
                raise CAUSES[cause].error(what, self.place(batch), batch.source) from None
            raise SourceError(
                f"source {batch.source} {what}",
                where=self.place(batch),
                hint=hint,
                source=batch.source,
            ) from None

    def place(self, batch: Batch) -> str:
        """Where to look: a file or table, never a credential."""
        return ""


class TypedBackend(SqlBackend):
    """A backend whose expressions are made total by the types of columns."""

    __slots__ = ("_columns",)

    _columns: dict[str, str]
    """Types of the columns of the relation and of what is made of them, for the dialect."""

    def relation_sql(self, relation: Relation) -> str:
        """The relation; types of its columns are kept for the expressions over them."""
        beneath = self.describe(f"SELECT * FROM {relation.bare(self.dialect())} AS relation")
        self._columns = {f"{RECORD}.{name}": kind for name, kind in beneath.items()}
        found = SqlBackend.relation_sql(self, relation)
        self._columns |= self.describe(f"SELECT * FROM {found}")
        return found


def expressions(query: Query) -> list[str]:
    """SQL of one record that the configuration brings."""
    inside = [field.expression for field in fields_of(query)]
    return list(dict.fromkeys(each for each in (*inside, query.where) if each is not None))


def listed(columns: Iterable[str]) -> str:
    """The columns there are, in words; names that begin or end with a blank are quoted."""
    names = (name if name == name.strip() else repr(name) for name in sorted(columns))
    return f"it has: {', '.join(names)}"


def _no_column(name: str, hint: str, source: str) -> SourceError:
    return MissingColumnError(f"source {source} has no column {name!r}", hint=hint, source=source)
