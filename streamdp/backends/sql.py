"""What all SQL engines do alike: look at types, ask the one question, say what failed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any

from streamdp.backends.question import asked, counts_of, only_cells, question, require_kinds
from streamdp.backends.relation import Relation
from streamdp.backends.words import Words
from streamdp.errors import SourceError
from streamdp.types import Batch, CellCounts, CellQuery, IntArray, Query

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

    opening_hint: str = "is it there, and may this user read it?"
    reading_hint: str = "look at the engine: was it stopped, out of memory or out of time?"

    def check(self, query: Query, batch: Batch) -> None:
        """Look at names and types of the columns.

        Raises:
            SourceError: The source cannot be opened, a column is missing or of another type, or
                an expression cannot be understood.
        """
        self._check_cells(only_cells(query, batch), batch)

    def _check_cells(self, query: CellQuery, batch: Batch) -> None:
        with self.session():
            self._look_beneath(batch)
            with self._own_words(batch, *self._unread()):
                table = self.table(query, batch)
                columns = self.describe(f"SELECT * FROM {table}")
            for name in self.own_columns(query):
                if name not in columns:
                    raise _no_column(name, columns, batch.source)
            with self._own_words(batch, "cannot be opened", self.opening_hint):
                self.look_further(query, batch, columns)
            kinds = self._kinds(query, table, columns, batch.source)
        if self.time_column is not None:
            kinds |= {"time": columns[self.time_column]}
        require_kinds(
            self.words(), query, self.time_column, kinds, batch.source, self.type_hint(batch.source)
        )

    def _look_beneath(self, batch: Batch) -> None:
        """A query finds its columns in its table.

        A name that no column has could mean something else to the engine: PostgreSQL would call a
        function of it.
        """
        relation = self.relation
        if relation is None or not relation.is_made():
            return
        with self._own_words(batch, "cannot be opened", self.opening_hint):
            columns = self.describe(f"SELECT * FROM {relation.bare(self.words())} AS relation")
        for name in relation.named:
            if name not in columns:
                raise _no_column(name, columns, batch.source)

    def _unread(self) -> tuple[str, str]:
        """What is wrong, and what to do, where the engine cannot say which columns there are."""
        if self.relation is None or not self.relation.is_made():
            return "cannot be opened", self.opening_hint
        return "has a query that its engine cannot understand", _QUERY_HINT

    def answer(self, query: Query, batch: Batch) -> Any:
        """The statistic that answers a question, or one for each of its groups, from one scan.

        Raises:
            SourceError: The engine failed; its own words are dropped, since they quote rows.
        """
        asked = only_cells(query, batch)
        with self.session(), self._own_words(batch, "could not be read", self.reading_hint):
            found = self._cell_counts(asked, batch)
        return found if query.by else found[0]

    def _cell_counts(self, query: CellQuery, batch: Batch) -> tuple[CellCounts, ...]:
        """One `GROUP BY` of cells and public groups.

        Privacy: one record adds one to one cell of one group, or nothing if its value is null,
        NaN, infinite or (in text formats) no number, if its group is none of the public ones, or
        if the condition is not true of it. Values out of bounds are counted in the end cells. With
        a unit bound of k, one unit changes at most k counts.
        """
        table = self.table(query, batch)
        kinds = self._described(query, table)
        codes, records = self.run(question(self.words(), query, kinds, table, self._within(batch)))
        return counts_of(query, codes, records)

    @abstractmethod
    def words(self) -> Words:
        """The engine's words."""

    @abstractmethod
    def table(self, query: CellQuery, batch: Batch) -> str:
        """What stands behind FROM."""

    @abstractmethod
    def describe(self, select: str) -> dict[str, str]:
        """Names and types of the columns of a SELECT, without running it."""

    @abstractmethod
    def run(self, statement: str) -> tuple[IntArray, IntArray]:
        """The two columns of the answer."""

    @abstractmethod
    def failures(self) -> tuple[type[Exception], ...]:
        """The engine's exceptions."""

    @abstractmethod
    def moment(self, at: datetime) -> str:
        """A literal of an instant, to compare the time column with."""

    def type_hint(self, source: str) -> str:
        """What to do about a column of another type than its part takes."""
        return "name another column, or cast it in an expression"

    def session(self) -> AbstractContextManager[object]:
        """What is held open while a question is asked; its errors are its own."""
        return nullcontext()

    def look_further(self, query: CellQuery, batch: Batch, columns: Mapping[str, str]) -> None:
        """Anything else to refuse before a charge is spent."""
        return

    def named_in(self, expression: str) -> list[str]:
        """Columns that an expression names, as far as the engine tells."""
        return []

    def time(self) -> str:
        """SQL of the time of a record."""
        return self.words().name(self.time_column or "")

    def own_columns(self, query: CellQuery) -> list[str]:
        """Columns that the configuration names outside of expressions."""
        value = [query.column] if query.expression is None else []
        unit = [query.bound.column] if query.bound else []
        return [*value, *unit, *query.by, *([self.time_column] if self.time_column else [])]

    def named(self, query: CellQuery) -> list[str]:
        """All columns that are named, once each."""
        expressions = [each for each in (query.expression, query.where) if each is not None]
        inside = [name for each in expressions for name in self.named_in(each)]
        return list(dict.fromkeys([*self.own_columns(query), *inside]))

    def _within(self, batch: Batch) -> str:
        if self.time_column is None or batch.start is None or batch.end is None:
            return "true"
        start, end = (
            self.moment(datetime.fromtimestamp(seconds, UTC))
            for seconds in (batch.start, batch.end)
        )
        return f"{self.time()} >= {start} AND {self.time()} < {end}"

    def _described(self, query: CellQuery, table: str) -> dict[str, str]:
        """Types of what is asked; the condition is parsed with it."""
        parts = ", ".join(f"{sql} AS {part}" for part, sql in asked(self.words(), query).items())
        where = "true" if query.where is None else query.where
        return self.describe(f"SELECT {parts} FROM {table} WHERE ({where})")

    def _kinds(
        self, query: CellQuery, table: str, columns: Mapping[str, str], source: str
    ) -> dict[str, str]:
        try:
            return self._described(query, table)
        except self.failures():
            missing = [name for name in self.named(query) if name not in columns]
            if missing:
                raise _no_column(missing[0], columns, source) from None
            raise SourceError(
                f"an expression for source {source} cannot be understood by its engine",
                where=" / ".join(each for each in (query.expression, query.where) if each),
                hint="write one SQL expression over the columns of one record",
                source=source,
            ) from None

    @contextmanager
    def _own_words(self, batch: Batch, what: str, hint: str) -> Iterator[None]:
        try:
            yield
        except self.failures():
            raise SourceError(
                f"source {batch.source} {what}",
                where=self.place(batch),
                hint=hint,
                source=batch.source,
            ) from None

    def place(self, batch: Batch) -> str:
        """Where to look: a file or table, never a credential."""
        return ""


def _no_column(name: str, columns: Mapping[str, str], source: str) -> SourceError:
    return SourceError(
        f"source {source} has no column {name!r}",
        hint=f"it has: {', '.join(sorted(columns))}",
        source=source,
    )
