"""Public groups in SQL: the number of a record's group, its texts compared byte by byte."""

from __future__ import annotations

from collections.abc import Mapping

from streamdp.backends.sql.words import Words
from streamdp.types import Query


def key(words: Words, query: Query, column: int, kinds: Mapping[str, str]) -> str:
    """SQL of what a record's group is known by: a text, or its position in the list of texts.

    Args:
        words: Of the engine.
        query: With groups.
        column: Index in `query.by`.
        kinds: Types; that of the column under `group` and its index.
    """
    text = words.as_text(words.name(query.by[column]), kinds[f"group{column}"])
    return words.position(text, _texts(query, column)) or text


def public_groups(words: Words, query: Query) -> str:
    """SQL behind JOIN: from the columns `key` b_0, … of a record to its group's number, part."""
    lists = [_texts(query, column) for column in range(len(query.by))]
    looked_up = [words.position("x", texts) is not None for texts in lists]
    rows = []
    for part, group in enumerate(query.groups):
        keys = [
            str(texts.index(text)) if found else words.text(text)
            for text, texts, found in zip(group, lists, looked_up, strict=True)
        ]
        rows.append([*keys, f"CAST({part} AS {words.whole})"])
    names = [f"g{i}" for i in range(len(query.by))]
    same = " AND ".join(f"b{i} = g{i}" for i in range(len(query.by)))
    return f"{words.rows(rows, 'public_group', [*names, 'part'])} ON {same}"


def _texts(query: Query, column: int) -> tuple[str, ...]:
    """Distinct texts of a column of the groups."""
    return tuple(dict.fromkeys(group[column] for group in query.groups))
