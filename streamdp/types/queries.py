"""All typed questions together, and what is done to each of them alike."""

from __future__ import annotations

from dataclasses import replace

from streamdp.types.keys import KeyCounts, KeyQuery
from streamdp.types.questions import CellCounts, CellQuery, UnitBound
from streamdp.types.tables import (
    CompoundAnswer,
    CompoundQuery,
    SumQuery,
    Sums,
    TableCounts,
    TableQuery,
    UnitQuery,
)

Query = CellQuery | TableQuery | SumQuery | UnitQuery | CompoundQuery | KeyQuery
"""A typed question to a batch; each has `where`, `bound`, `by` and `groups`."""

Statistic = CellCounts | TableCounts | Sums | CompoundAnswer | KeyCounts
"""The answer to a query; one with `by` is answered by a tuple of these, one a group."""


def with_bound(query: Query, bound: UnitBound | None) -> Query:
    """A question where at most so many records of one unit count."""
    if isinstance(query, CompoundQuery):
        return CompoundQuery(tuple(replace(part, bound=bound) for part in query.parts))
    return replace(query, bound=bound)


def with_groups(query: Query, by: tuple[str, ...], groups: tuple[tuple[str, ...], ...]) -> Query:
    """A question of each public group; keys are found in all of a batch and have none."""
    if isinstance(query, KeyQuery):
        raise TypeError("keys are found, not asked of public groups")
    if isinstance(query, CompoundQuery):
        return CompoundQuery(tuple(replace(part, by=by, groups=groups) for part in query.parts))
    return replace(query, by=by, groups=groups)
