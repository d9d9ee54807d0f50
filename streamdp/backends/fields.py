"""Fields that a question reads of a record: columns and expressions, and the part of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from streamdp.backends.sql.scan import Scan
from streamdp.backends.sql.words import Role, Words
from streamdp.errors import SourceError
from streamdp.types import CellQuery, KeyQuery, Query

_WANTED: Mapping[Role, str] = {
    "value": "a number, a time or a duration",
    "unit": "a scalar",
    "group": "text, a whole number, a date or a truth value",
    "listed": "text, a whole number, a date or a truth value",
    "time": "a date or a timestamp",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One column or expression that a question needs.

    Args:
        alias: Its name in the SQL.
        role: What it is for; decides which types it may have.
        column: Column, or the name of what `expression` derives.
        expression: SQL of one record.
    """

    alias: str
    role: Role
    column: str
    expression: str | None = None

    def sql(self, words: Words) -> str:
        """SQL of its value."""
        return words.name(self.column) if self.expression is None else words.tried(self.expression)


def fields_of(query: Query) -> Iterator[Field]:
    """All of a question: values first, then unit, then columns of groups or of keys."""
    if isinstance(query, CellQuery):
        yield Field("value", "value", query.column, query.expression)
    elif not isinstance(query, KeyQuery):
        scan = Scan.of(query)
        for i, axis in enumerate(scan.dimensions):
            role: Role = "value" if axis.values is None else "listed"
            role = "time" if axis.clock is not None else role
            yield Field(f"d{i}", role, axis.name, axis.sql)
        for i, term in enumerate(scan.terms):
            yield Field(f"w{i}", "value", term.name, term.sql)
    if query.bound is not None:
        yield Field("unit", "unit", query.bound.column)
    columns = query.columns if isinstance(query, KeyQuery) else query.by
    for i, name in enumerate(columns):
        yield Field(f"group{i}", "group", name)


CONDITION_HINT = "a condition is no number: write CASE WHEN … THEN 1 ELSE 0 END"


def _hint(role: Role, kind: str, otherwise: str) -> str:
    return CONDITION_HINT if role == "value" and kind.lower() == "boolean" else otherwise


def require_kinds(
    words: Words,
    query: Query,
    time: str | None,
    kinds: Mapping[str, str],
    source: str,
    hint: Callable[[str, Field], str],
) -> None:
    """Refuse a type that cannot play its part.

    Args:
        words: Know the engine's types.
        query: What is asked.
        time: Column that puts a record in a window.
        kinds: Types by alias; that of the time column under `time`.
        source: Name of the source.
        hint: What to do about a field of a source that has another type.

    Raises:
        SourceError: A column has another type.
    """
    fields = [*fields_of(query), *([Field("time", "time", time)] if time is not None else [])]
    for field in fields:
        if not words.takes(field.role, kinds[field.alias]):
            raise SourceError(
                f"column {field.column!r} of source {source} has type {kinds[field.alias]},"
                f" wanted is {_WANTED[field.role]}",
                hint=_hint(field.role, kinds[field.alias], hint(source, field)),
                source=source,
            )
