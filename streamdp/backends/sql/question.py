"""A question of cells as SQL, in the words all engines share and the few in which they differ.

Groups and cells are one integer, their code: group number times the width of the grid, plus the
cell above the first. So one scan with one GROUP BY answers for all groups, and a unit's records
are in one order. What comes back is a row for each occupied code.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from streamdp.backends.fields import fields_of
from streamdp.backends.sql.bound import bounded
from streamdp.backends.sql.cells import LARGEST, cell_sql
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
    finite = [f"v BETWEEN {words.double(-LARGEST)} AND {words.double(LARGEST)}"]
    if query.bound is not None:
        wanted.append(f"{words.name(query.bound.column)} AS u")
        finite.append("u IS NOT NULL")
    wanted += [f"{key(words, query, i, kinds)} AS b{i}" for i in range(len(query.by))]
    source = f"(SELECT {', '.join(wanted)} FROM {table} WHERE {where}) AS record"
    code = cell_sql("v", query.grid, words.double)
    if query.by:
        code = f"part * {_width(query)} + {code} - ({query.grid.lower})"
        source += f" JOIN {public_groups(words, query)}"
    unit = "" if query.bound is None else ", u"
    coded = f"SELECT {code} AS code{unit} FROM {source} WHERE {' AND '.join(finite)}"
    if query.bound is not None:
        return bounded(words, query.bound, kinds["unit"], coded)
    return f"SELECT code, count(*) AS records FROM ({coded}) AS coded GROUP BY code"


def counts_of(query: CellQuery, rows: IntArray) -> tuple[CellCounts, ...]:
    """Rows of the answer, in any order, as one `CellCounts` a group."""
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
