"""Twins of keys: a unit more or less of a key that is not found leaves no trace but the draw.

Below `at_least` the question leaves a key out, so both draw the same and every byte must be equal.
From there on a coin more is tossed: both draw from their records, then release what is drawn from a
public batch, and again every byte must be equal. One job asks each day, one both, and one counts by
the keys of the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from streamdp.kinds.keys.kind import Keys
from streamdp.types import Entropy, KeyCounts, Outcome, Plan
from tests.crash import every_kind, twins
from tests.worlds import ReplayedEntropy

AT_LEAST = 5
KNOWN = ("Chur",) * 60 + ("Thun",) * 40
"""Texts of every day, in both twins."""

CONFIG = f"""
store: {{path: store.db, anchor: vault/anchor}}
privacy:
  {{unit: person, neighbours: add-remove,
   caps: {{batch: {{rho: 90}}, lifetime: {{rho: 900}}, delta: {{lifetime: 1e-3}}}}}}
sources:
  stream:
    path: stream.csv
    types: {{at: timestamp, town: text}}
    batches: {{column: at, every: 1d, start: 2023-11-15, end: 2023-11-17}}
releases:
  towns: {{kind: keys, source: stream, by: town, epsilon: 1, delta: 1e-4, at_least: {AT_LEAST},
    sinks: [table, file]}}
  both: {{kind: keys, source: stream, by: town, rho: 0.5, delta: 1e-4, at_least: {AT_LEAST},
    window: 2, public: [Bern], sinks: [file]}}
  sizes: {{kind: statistics, source: stream, by: town, groups: {{from: towns, most: 3}}, epsilon: 1,
    measures: {{rows: count}}, sinks: [file]}}
sinks:
  table: {{kind: table, table: towns}}
  file: {{kind: jsonl, path: out.jsonl}}
log: {{path: streamdp.log, level: debug}}
"""

BELOW: tuple[tuple[Sequence[str], str], ...] = (
    ((), "Visp"),
    (("Visp",) * (AT_LEAST - 2), "Visp"),
    (("Visp",) * 3 + ("Ems",) * 2, "Ems"),
    ((), "x" * 65),
    ((), ""),
)
"""Texts of the first day, and one more: of a key that has too few units in both twins."""

FROM_THERE_ON: tuple[tuple[Sequence[str], str], ...] = (
    (("Visp",) * (AT_LEAST - 1), "Visp"),
    (("Visp",) * AT_LEAST, "Visp"),
    (("\u202eVisp",) * 90, "\u202eVisp"),
    (("=Visp",) * (AT_LEAST - 1), "=Visp"),
    ((), "Chur"),
)
"""The same, of a key that a coin is tossed for in one twin at least, or of one that is counted."""

_PUBLIC = KeyCounts(dict.fromkeys([("Chur",), ("Thun",)], 200))


def below(records: Sequence[str], one_more: str) -> list[str]:
    """Names of what differs between twins whose draws are equal."""
    return twins.difference(records, one_more, CONFIG, _write)


def above(records: Sequence[str], one_more: str) -> list[str]:
    """Names of what differs between twins that draw, then release what is public."""
    with _public_outcomes():
        return twins.difference(records, one_more, CONFIG, _write)


def _write(home: Path, records: Sequence[str]) -> None:
    days = (("2023-11-15", [*KNOWN, *records]), ("2023-11-16", KNOWN))
    rows = [f"{day}T12:00:00,{town}" for day, towns in days for town in towns]
    (home / "stream.csv").write_text("\n".join(["at,town", *rows, ""]))


@contextmanager
def _public_outcomes() -> Iterator[None]:
    """Draw keys from the records, then release those that a public batch has."""
    draw = Keys.draw

    def drawn(self: Keys, plan: Plan, statistic: KeyCounts, entropy: Entropy) -> Outcome:
        draw(self, plan, statistic, entropy)
        return draw(self, plan, _PUBLIC, ReplayedEntropy("public"))

    with every_kind.public_outcomes(), mock.patch.object(Keys, "draw", drawn):
        yield
