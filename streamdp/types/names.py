"""Names that a question is written in, and what was learned of it after some of them changed.

A signature names its columns under `column`, `by` and `measures`; a learned state has an entry for
each measure and group, whose key is the group as a list of JSON, alone or with a cell behind it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamdp.types.forms import Json, Row

_NAME = re.compile(r"[^\W\d][\w ]*")


@dataclass(frozen=True, slots=True)
class NewNames:
    """New names in a question that is the same otherwise.

    Args:
        groups: Old and new groups, a text for each column of `by`.
        columns: Old and new columns of the source.
        measures: Old and new measures of statistics.
    """

    groups: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    measures: tuple[tuple[str, str], ...] = ()

    def of_signature(self, signature: Json) -> Json:
        """The signature in the new names: columns in expressions too."""
        new = dict(self.columns)
        words = "|".join(re.escape(old) for old in sorted(new, key=len, reverse=True))
        found = re.compile(rf"(?<!\w)(?:{words})(?!\w)") if words else None
        measures = dict(self.measures)

        def renamed(value: Json, *, of_measures: bool = False) -> Json:
            if isinstance(value, dict):
                return {
                    measures.get(key, key) if of_measures else key: renamed(
                        each, of_measures=key == "measures" and not of_measures
                    )
                    for key, each in value.items()
                }
            if isinstance(value, list | tuple):
                return [renamed(each) for each in value]
            if isinstance(value, str) and found:
                return found.sub(lambda match: new[match[0]], value)
            return value

        return renamed(signature)

    def of_state(self, state: Json) -> Json:
        """The learned state, where what is known of an old name is that of the new one."""
        if not isinstance(state, dict):
            return state
        measures = dict(self.measures)
        return {measures.get(key, key): self._of_groups(each) for key, each in self._keyed(state)}

    def of_rows(self, rows: Sequence[Row]) -> tuple[Row, ...]:
        """Rows of a release in the new names; what is on file keeps the old ones."""
        columns, measures = dict(self.columns), dict(self.measures)
        texts = {old: new for pair in self.groups for old, new in zip(*pair, strict=True)}

        def value(name: str, of: Json) -> Json:
            if name == "measure":
                return measures.get(of, of)
            return texts.get(of, of) if isinstance(of, str) else of

        return tuple(
            {columns.get(name, name): value(name, each) for name, each in row.items()}
            for row in rows
        )

    def _of_groups(self, state: Json) -> Json:
        if not isinstance(state, dict) or not self.groups:
            return state
        return {key: self._of_groups(each) for key, each in self._keyed(state)}

    def _keyed(self, state: Json) -> Iterator[tuple[str, Json]]:
        new = {json.dumps(old): json.dumps(group) for old, group in self.groups}
        for key, each in state.items():
            for old, group in new.items():
                if key == old or key.startswith(old[:-1] + ", "):
                    yield group[:-1] + key[len(old) - 1 :], each
                    break
            else:
                yield key, each


def new_names(old: Json, new: Json) -> NewNames | None:
    """New names of columns and measures that make one signature of another; None if none do.

    >>> new_names({"column": "delay", "bins": 2}, {"column": "late", "bins": 2}).columns
    (('delay', 'late'),)
    >>> new_names({"column": "delay", "bins": 2}, {"column": "late", "bins": 3}) is None
    True
    """
    if not isinstance(old, dict) or not isinstance(new, dict):
        return None
    columns = dict.fromkeys(
        (before, after)
        for before, after in zip(_columns(old), _columns(new), strict=False)
        if before != after
    )
    if not all(_NAME.fullmatch(name) for pair in columns for name in pair):
        return None
    before, after = old.get("measures", {}), new.get("measures", {})
    gone = [name for name in before if name not in after]
    measures = zip(gone, [name for name in after if name not in before], strict=False)
    names = NewNames((), tuple(columns), tuple(measures))
    return names if names.of_signature(old) == new else None


def _columns(signature: Json) -> Iterator[str]:
    """Columns that a signature names, in their order."""
    yield from (signature[key] for key in ("column",) if isinstance(signature.get(key), str))
    yield from signature.get("by", ())
    for measure in signature.get("measures", {}).values():
        for key, value in measure.items():
            if isinstance(value, list) and value and key not in ("cells", "cuts", "grid"):
                yield str(value[0])
