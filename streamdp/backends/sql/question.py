"""A question of cells as SQL, in the words all engines share and the few in which they differ.

Groups and cells are one integer, their code: group number times the width of the grid, plus the
cell above the first. So one scan with one GROUP BY answers for all groups, and a unit's records
are in one order. What comes back is a row for each occupied code, and one for records that have no
cell, of which it counts none. Codes that fit 16 bits are grouped as such, which an engine may do by
an array.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from streamdp.backends.fields import fields_of
from streamdp.backends.sql.bound import bounded
from streamdp.backends.sql.cells import LARGEST, SMALL, cell_sql
from streamdp.backends.sql.public_groups import key, public_groups
from streamdp.backends.sql.words import Words
from streamdp.errors import ConfigurationError
from streamdp.types import CellCounts, CellQuery, IntArray


def question(
    words: Words, query: CellQuery, kinds: Mapping[str, str], table: str, within: str
) -> str:
    """SQL whose rows are (code, records).

    Args:
        words: Of the engine.
        query: What is asked.
        kinds: The engine's types by the aliases of `fields.fields_of`.
        table: What stands behind FROM.
        within: Condition that a record belongs to the batch.
    """
    value = next(fields_of(query))
    where = within if query.where is None else f"{within} AND {words.tried(query.where)}"
    wanted = [f"{words.number(value.sql(words), kinds['value'])} AS v"]
    if query.bound is not None:
        wanted.append(f"{words.unit(query.bound.column, kinds['unit'])} AS u")
    wanted += [f"{key(words, query, i, kinds)} AS b{i}" for i in range(len(query.by))]
    source = f"(SELECT {', '.join(wanted)} FROM {table} WHERE {where}) AS record"
    if query.by:
        source += f" JOIN {public_groups(words, query)}"
    kind, shift = _stored(words, query)
    code = _code(words, query, kind, shift)
    if query.bound is not None:
        known = f"v BETWEEN {words.double(-LARGEST)} AND {words.double(LARGEST)} AND u IS NOT NULL"
        coded = f"SELECT {code} AS code, u FROM {source} WHERE {known}"
        return bounded(words, query.bound, kinds["unit"], coded)
    return (
        f"SELECT coalesce(CAST(code AS {words.whole}), 0) + ({shift}) AS code,"
        " count(code) AS records"
        f" FROM (SELECT {code} AS code FROM {source}) AS coded GROUP BY code"
    )


def _code(words: Words, query: CellQuery, kind: str, shift: int) -> str:
    """The code of a record less the shift; null if it has no cell."""
    if not query.by and not shift:
        return cell_sql("v", query.grid, words.double, kind)
    code = cell_sql("v", query.grid, words.double, words.whole)
    if query.by:
        code = f"part * {_width(query)} + {code} - ({query.grid.lower})"
    return f"CAST({code} - ({shift}) AS {kind})"


def _stored(words: Words, query: CellQuery) -> tuple[str, int]:
    """The type in which codes are grouped, and what is taken off them so that they fit."""
    first = 0 if query.by else query.grid.lower
    last = first + _width(query) * len(query.groups) - 1
    if query.bound is not None or last - first >= 2 * SMALL:
        return words.whole, 0
    return words.small, 0 if first >= -SMALL and last < SMALL else first + SMALL


def counts_of(query: CellQuery, rows: IntArray) -> tuple[CellCounts, ...]:
    """Rows of the answer, in any order, as one `CellCounts` a group."""
    rows = rows[rows[:, 1] > 0]
    codes, records = rows[np.argsort(rows[:, 0])].T
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
