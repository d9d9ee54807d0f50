"""A table of a database, or a query over it, as a source of records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Relation:
    """One of the two.

    Args:
        table: Name, with its schema before a dot if it has one.
        query: A SELECT of the configuration, one row a record.
    """

    table: str = ""
    query: str = ""

    def sql(self, name: Callable[[str], str]) -> str:
        """What stands behind FROM.

        >>> Relation(table="public.rides").sql(lambda part: f'"{part}"')
        '"public"."rides"'
        """
        if self.query:
            return f"({self.query}) AS relation"
        return ".".join(name(part) for part in self.table.split("."))
