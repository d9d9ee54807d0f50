"""The one question as SQL, in the words all engines share and the few in which they differ.

Groups and cells are one integer, their code: group number times the width of the grid, plus the
cell above the first. So one scan with one GROUP BY answers for all groups, and a unit's records
are in one order. What comes back is a row for each occupied code.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from streamdp.backends.bound import bounded
from streamdp.backends.cells import LARGEST, cell_sql
from streamdp.backends.words import Role, Words
from streamdp.errors import ConfigurationError, SourceError
from streamdp.types import Batch, CellCounts, CellQuery, IntArray, Query

_WANTED: Mapping[Role, str] = {
    "value": "a number, a time or a duration",
    "unit": "a scalar",
    "group": "text, a whole number, a date or a truth value",
    "time": "a date or a timestamp",
}


def only_cells(query: Query, batch: Batch) -> CellQuery:
    """The question, if it is one of cells.

    Raises:
        SourceError: The engine does not answer others.
    """
    if isinstance(query, CellQuery):
        return query
    raise SourceError("this engine answers questions of cells alone", source=batch.source)


def question(
    words: Words, query: CellQuery, kinds: Mapping[str, str], table: str, within: str
) -> str:
    """SQL whose rows are (code, records).

    Args:
        words: Of the engine.
        query: What is asked.
        kinds: The engine's types of what `asked` names, by name.
        table: What stands behind FROM.
        within: Condition that a record belongs to the batch.
    """
    where = within if query.where is None else f"{within} AND {words.tried(query.where)}"
    wanted = [f"{words.number(value_of(words, query), kinds['value'])} AS v"]
    finite = [f"v BETWEEN {words.double(-LARGEST)} AND {words.double(LARGEST)}"]
    if query.bound is not None:
        wanted.append(f"{words.name(query.bound.column)} AS u")
        finite.append("u IS NOT NULL")
    wanted += [f"{words.as_text(words.name(name))} AS b{i}" for i, name in enumerate(query.by)]
    source = f"(SELECT {', '.join(wanted)} FROM {table} WHERE {where}) AS record"
    code = cell_sql("v", query.grid, words.double)
    if query.by:
        code = f"part * {_width(query)} + {code} - ({query.grid.lower})"
        source += f" JOIN {_public_groups(words, query)}"
    unit = "" if query.bound is None else ", u"
    coded = f"SELECT {code} AS code{unit} FROM {source} WHERE {' AND '.join(finite)}"
    if query.bound is not None:
        return bounded(words, query.bound, kinds["unit"], coded)
    return f"SELECT code, count(*) AS records FROM ({coded}) AS coded GROUP BY code"


def value_of(words: Words, query: CellQuery) -> str:
    """SQL of the value that is asked for."""
    return words.name(query.column) if query.expression is None else words.tried(query.expression)


def counts_of(query: CellQuery, codes: IntArray, records: IntArray) -> tuple[CellCounts, ...]:
    """Rows of the answer, in any order, as one `CellCounts` a group."""
    order = np.argsort(codes)
    codes, records = codes[order], records[order]
    if not query.by:
        return (CellCounts(codes, records),)
    width = _width(query)
    edges = np.searchsorted(codes, width * np.arange(len(query.groups) + 1))
    return tuple(
        CellCounts(codes[first:stop] - width * part + query.grid.lower, records[first:stop])
        for part, (first, stop) in enumerate(pairwise(edges))
    )


def _width(query: CellQuery) -> int:
    width = query.grid.upper - query.grid.lower + 1
    if width * len(query.groups) >= 2**62:
        raise ConfigurationError(
            f"{len(query.groups)} groups of {width} cells are too many to count in one scan",
            hint="make the resolution coarser, or the bounds narrower",
        )
    return width


def _public_groups(words: Words, query: CellQuery) -> str:
    rows = ", ".join(
        f"({', '.join(words.text(value) for value in group)}, CAST({part} AS BIGINT))"
        for part, group in enumerate(query.groups)
    )
    names = [f"g{i}" for i in range(len(query.by))]
    same = " AND ".join(f"b{i} = g{i}" for i in range(len(query.by)))
    return f"(VALUES {rows}) AS public_group({', '.join(names)}, part) ON {same}"


def asked(words: Words, query: CellQuery) -> dict[str, str]:
    """SQL of everything whose type must be known, by its part in the question."""
    parts = {"value": value_of(words, query)}
    if query.bound is not None:
        parts["unit"] = words.name(query.bound.column)
    return parts | {f"group{i}": words.name(name) for i, name in enumerate(query.by)}


def require_kinds(
    words: Words,
    query: CellQuery,
    time: str | None,
    kinds: Mapping[str, str],
    source: str,
    hint: str = "name another column, or cast it in an expression",
) -> None:
    """Refuse a type that cannot play its part.

    Args:
        words: Know the engine's types.
        query: What is asked.
        time: Column that puts a record in a window.
        kinds: Types by part, as `asked` names the parts; `time` beside them.
        source: Name of the source.
        hint: What to do about another type.

    Raises:
        SourceError: A column has another type.
    """
    unit = query.bound.column if query.bound is not None else ""
    names = {"value": query.column, "unit": unit, "time": time or ""}
    names |= {f"group{i}": name for i, name in enumerate(query.by)}
    roles: dict[str, Role] = {"value": "value", "unit": "unit", "time": "time"}
    for part, kind in kinds.items():
        role = roles.get(part, "group")
        if not words.takes(role, kind):
            raise SourceError(
                f"column {names[part]!r} of source {source} has type {kind},"
                f" wanted is {_WANTED[role]}",
                hint=hint,
                source=source,
            )
