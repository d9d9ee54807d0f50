"""Key queries over records in memory: the reference that every engine must agree with."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from streamdp.backends.sql.bound import DIGITS
from streamdp.types import Key, KeyCounts, KeyQuery
from tests.contract.memory.values import canonical, text_of


def keys_of(query: KeyQuery, records: Iterable[Mapping[str, Any]]) -> KeyCounts:
    """Keys and their units."""
    found: list[tuple[Key, Any]] = []
    for record in records:
        key = tuple(text_of(record[name]) for name in query.columns)
        if all(text and len(text.encode()) <= query.longest for text in key):
            unit = record[query.bound.column] if query.bound else object()
            if unit is not None:
                found.append((key, unit))
    known = set(query.known)
    counts: Counter[Key] = Counter()
    if query.bound is None:
        counts.update(key for key, _ in found)
    else:
        of_unit: defaultdict[Any, set[Key]] = defaultdict(set)
        for key, unit in found:
            of_unit[unit].add(key)
        for unit, keys in of_unit.items():

            def place(key: Key, unit: Any = unit) -> tuple[bool, str, list[bytes]]:
                said = f"{query.bound.key}:{canonical(unit)}:" + "\x1f".join(key)  # type: ignore[union-attr]
                digits = hashlib.md5(said.encode()).hexdigest()[:DIGITS]  # noqa: S324
                return key in known, digits, [text.encode() for text in key]

            counts.update(sorted(keys, key=place)[: query.bound.rows])
    return KeyCounts({k: n for k, n in counts.items() if n >= query.least or k in known})
