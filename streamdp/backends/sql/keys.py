"""A question of keys as SQL, and its rows as counts.

Records are grouped by the bytes of their texts, so no collation merges two keys or chooses which
spelling of one appears. Known keys stand in the question as a table. Texts come back as bytes, so
that none of them can fail where it is read.

With a bound of k, pairs of unit and key are made distinct. Units with k keys or fewer count for all
of them; of the others the pairs beyond k are taken off again, and only theirs are put in order:
keys that are not known first, then by a hash of key of the choice, unit and key.

Privacy: the order looks at the unit, its keys and public facts, so one unit more changes the counts
of at most k keys, each by one. Which rows come back depends on counts that the question itself
makes, and they reach `draw` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from streamdp.backends.sql.words import Words
from streamdp.types import KeyCounts, KeyQuery, UnitBound

BETWEEN = "\x1f"
"""Stands between texts of a key where they are hashed: two keys may share a hash."""


def key_question(
    words: Words, query: KeyQuery, kinds: Mapping[str, str], table: str, within: str
) -> str:
    """SQL whose rows are (text as bytes…, units).

    Args:
        words: Of the engine.
        query: What is asked.
        kinds: The engine's types by the aliases of `fields.fields_of`.
        table: What stands behind FROM.
        within: Condition that a record belongs to the batch.
    """
    names = [f"k{i}" for i in range(len(query.columns))]
    texts = ", ".join(
        f"{words.as_text(words.name(column), kinds[f'group{i}'])} AS t{i}"
        for i, column in enumerate(query.columns)
    )
    unit = ""
    if query.bound is not None:
        unit = f", {words.unit(query.bound.column, kinds['unit'])} AS u"
    where = within if query.where is None else f"{within} AND {words.tried(query.where)}"
    fit = [f"{words.bytes(f't{i}')} BETWEEN 1 AND {query.longest}" for i in range(len(names))]
    fit += ["u IS NOT NULL"] if query.bound is not None else []
    keys = ", ".join(
        f"{words.short(f't{i}', query.longest)} AS {name}" for i, name in enumerate(names)
    )
    held = (
        f"SELECT {keys}{', u' if unit else ''} FROM (SELECT {texts}{unit} FROM {table}"
        f" WHERE {where}) AS record WHERE {' AND '.join(fit)}"
    )
    known = words.listed([[key[i] for key in query.known] for i in range(len(names))], "known")
    group = ", ".join(names)
    if query.bound is None:
        parts = [
            f"counted AS (SELECT {group}, count(*) AS n FROM ({held}) AS held GROUP BY {group})"
        ]
    else:
        parts = _of_units(words, query.bound, kinds["unit"], held, names, known)
    same = _same(names, "counted")
    shown = ", ".join(f"{words.blob(f'counted.{name}')} AS {name}" for name in names)
    return (
        f"WITH {', '.join(parts)} SELECT {shown}, n FROM counted LEFT JOIN {known} ON {same}"
        f" WHERE n >= {query.least} OR g0 IS NOT NULL"
    )


def _of_units(
    words: Words, bound: UnitBound, kind: str, held: str, names: Sequence[str], known: str
) -> list[str]:
    """Tables behind WITH, the last of them `counted`, of at most k keys of a unit."""
    group = ", ".join(names)
    of_pairs = ", ".join(f"pairs.{name}" for name in names)
    unit = f"coalesce({words.canonical('pairs.u', kind)}, '')"
    said = f", {words.text(BETWEEN)}, ".join(f"pairs.{name}" for name in names)
    start = words.start(f"concat({words.text(bound.key + ':')}, {unit}, {words.text(':')}, {said})")
    order = f"CASE WHEN g0 IS NULL THEN 0 ELSE 1 END, {start}, {of_pairs}"
    return [
        f"pairs AS (SELECT DISTINCT u, {group} FROM ({held}) AS held)",
        f"large AS (SELECT u FROM pairs GROUP BY u HAVING count(*) > {bound.rows})",
        f"ranked AS (SELECT {of_pairs}, row_number() OVER (PARTITION BY pairs.u ORDER BY {order})"
        f" AS place FROM pairs JOIN large ON pairs.u = large.u"
        f" LEFT JOIN {known} ON {_same(names, 'pairs')})",
        f"tallied AS (SELECT {group}, count(*) AS c FROM pairs GROUP BY {group} UNION ALL"
        f" SELECT {group}, -count(*) AS c FROM ranked WHERE place > {bound.rows} GROUP BY {group})",
        f"counted AS (SELECT {group}, CAST(sum(c) AS {words.whole}) AS n FROM tallied"
        f" GROUP BY {group} HAVING sum(c) > 0)",
    ]


def _same(names: Sequence[str], table: str) -> str:
    return " AND ".join(f"{table}.{name} = g{i}" for i, name in enumerate(names))


def key_counts(rows: Iterable[Sequence[Any]]) -> KeyCounts:
    """Rows of the answer, in any order; bytes that are no UTF-8 become lone surrogates."""
    return KeyCounts(
        {
            tuple(bytes(text).decode("utf-8", "surrogateescape") for text in row[:-1]): int(row[-1])
            for row in rows
        }
    )
