"""An installation that releases every kind in several forms, killed and compared like the other.

Records are read by the engine: a backend of Python cannot answer SQL.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from unittest import mock

from streamdp.kinds.experts.kind import Experts
from streamdp.kinds.keys.kind import Keys
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.kinds.selection.kind import Selection
from streamdp.kinds.statistics.kind import Statistics
from streamdp.kinds.workload.kind import WorkloadRelease
from streamdp.types import Entropy, Outcome, Plan, ReleaseKind, Statistic
from tests.crash.home import Home
from tests.invariants import violations
from tests.kinds.cases import empty
from tests.worlds import ReplayedEntropy

CLASSES: tuple[type[Any], ...] = (Quantiles, Statistics, WorkloadRelease, Selection, Experts, Keys)

RELEASES = {
    "middle": "kind: quantiles, column: x, quantiles: [0.5], resolution: 1, bounds: [0, 100]",
    "counts": """kind: statistics, measures: {rows: count, mean: {mean: x, resolution: 1,
     bounds: [0, 100]}, words: {histogram: note, values: [a, b], other: true, nulls: cell},
     sizes: {histogram: x, cuts: [0, 50], nulls: cell}}""",
    "by_note": "kind: statistics, by: note, groups: [a, b], measures: {rows: count}",
    "tables": """kind: workload, expected_rows: 20, predicates: {many: "size >= 50"},
     dimensions: {note: {values: [a, b]}, size: {column: x, cuts: [0, 50]}}""",
    "measured": """kind: workload, expected_rows: 20, choose: public, raw: true, marginals: 1,
     dimensions: {note: {values: [a, b]}, size: {column: x, cuts: [0, 50]}}""",
    "tested": """kind: workload, expected_rows: 4000, choose: online, tolerance: 0.9,
     dimensions: {note: {values: [a, b]}, size: {column: x, cuts: [0, 50]}}""",
    "rule": """kind: selection, score: {errors: note = 'a'},
     among: {sql: "x >= {t}", t: {from: 0, to: 3}}""",
    "three": """kind: selection, top: 2, mechanism: permute-and-flip,
     score: {sum: x, bounds: [0, 100]},
     among: {conditions: {none: note IS NULL, a: note = 'a', long: length(note) > 3}}""",
    "alarm": """kind: experts, expected_rows: 20, action: drawn,
     experts: {rules: {sql: "x >= {t}", t: {from: 0, to: 3}}, label: note = 'a'}""",
    "action": """kind: experts, expected_rows: 20, experts: {denominator: 4,
     losses: {none: CASE WHEN note IS NULL THEN 1 ELSE 0 END, half: "0.5", far: abs(x) / 100,
     long: length(note) / 10}}""",
    "texts": """kind: keys, by: note, delta: 1e-4, at_least: 1, public: [a]""",
}
"""What each release asks; columns are `x`, a number, and `note`, a text."""


IN_RHO = {
    "noisy": """kind: statistics, measures: {rows: count, mean: {mean: x, resolution: 1,
     bounds: [0, 100]}}""",
    "weighed": """kind: workload, expected_rows: 20,
     dimensions: {note: {values: [a, b]}, size: {column: x, cuts: [0, 50]}}""",
    "both_days": """kind: keys, by: note, delta: 1e-4, window: 2, public: [a]""",
}
"""What is asked besides at a price in rho, under caps in rho."""


def releases(
    source: str,
    sinks: str = "file",
    asked: Mapping[str, str] = RELEASES,
    price: str = "epsilon: 0.1",
) -> str:
    """Lines of the configuration: every release, to a table of its own and to these sinks."""
    return "".join(
        f"  {name}:\n    {{source: {source}, {price}, sinks: [{name}, {sinks}],\n     {text}}}\n"
        for name, text in asked.items()
    )


ALL = RELEASES | IN_RHO

TOGETHER = "both_days"
"""The release that asks both days at once."""

REPORTS = """
reports:
  days: {job: action, period: day, path: reports, form: [html, md]}
  weeks: {job: three, period: week, path: reports, form: [html, md, pdf]}
  months: {job: counts, period: month, path: reports, form: [html, md]}
"""
"""Lines of the configuration: reports that are written as soon as a period is over."""

TABLES = "".join(f"  {name}: {{kind: table, table: t_{name}}}\n" for name in ALL)
"""Lines of the configuration: their sinks."""

DAYS = ("15", "16")

CONFIG = f"""
store: {{path: store.db, anchor: vault/anchor}}
privacy:
  {{unit: person, neighbours: add-remove, caps: {{batch: {{rho: 1}}, lifetime: {{rho: 20}},
   delta: {{lifetime: 1e-3}}}}}}
sources:
  stream:
    path: stream.csv
    types: {{at: timestamp, x: number}}
    batches: {{column: at, every: 1d, start: 2023-11-15, end: 2023-11-17}}
releases:
{releases("stream")}{releases("stream", asked=IN_RHO, price="rho: 0.01")}
sinks:
{TABLES}  file: {{kind: jsonl, path: out.jsonl}}
log: {{path: streamdp.log, level: debug}}
{REPORTS}"""

COSTLY = CONFIG.replace("epsilon: 0.1", "epsilon: 5").replace(
    "{batch: {rho: 1}, lifetime: {rho: 20},", "{batch: {rho: 900}, lifetime: {rho: 9000},"
)
"""So sure of the best that how often a choice is tried moves with one record."""


@dataclass
class EveryKind(Home):
    """Two batches of a few records, each released in every kind."""

    @classmethod
    def furnish(cls, path: Path, config: str = CONFIG) -> Self:
        """Make a folder with a configuration and records."""
        home = super().furnish(path, config)
        home.engine = True
        records = ("1,a", "60,b", "99,", "-5,other")
        rows = [f"2023-11-{day}T12:00:00,{record}" for day in DAYS for record in records]
        (path / "stream.csv").write_text("\n".join(["at,x,note", *rows, ""]))
        return home

    def broken(self) -> list[str]:
        """Invariants that do not hold once all the work is done."""
        wrong = violations(self.store)
        facts, lines = self.facts(), self.published()
        released = {str(row[0]): str(row[1]) for row in facts["release"]}
        turns = [name for name in ALL for _ in DAYS if name != TOGETHER]
        if sorted(released.values()) != sorted([*turns, TOGETHER]):
            wrong.append("every batch is released in every kind")
        wrong += self._windows()
        if sorted(lines) != sorted(released) or len(lines) != len(self.lines()):
            wrong.append("the sink has each release once")
        for name in ALL:
            wrong += self._table(name, {each for each in released if released[each] == name})
        if self.paid() != 2 * len(released):
            wrong.append("every debt is paid")
        return wrong

    def _windows(self) -> Iterator[str]:
        """What is wrong with charges on both days: each counts against both, and once over all."""
        with closing(sqlite3.connect(self.store)) as store:
            charges = store.execute(
                "SELECT r.batch, r.delta_atto, group_concat(j.batch), sum(j.delta_atto)"
                " FROM ledger r LEFT JOIN ledger j ON j.reservation = r.seq AND j.purpose = 'join'"
                " WHERE r.purpose = 'reserve' AND r.job = ? GROUP BY r.seq",
                [TOGETHER],
            ).fetchall()
        first, last = (f"2023-11-{day}" for day in DAYS)
        if set(charges) != {(last, 10**14, first, 0)}:
            yield "a charge on a window counts against each of its batches, and once"

    def _table(self, name: str, released: set[str]) -> Iterator[str]:
        """What is wrong with the table of a release: each row there is must be of a release."""
        with closing(sqlite3.connect(self.store)) as store:
            found = store.execute(f"SELECT * FROM t_{name}").fetchall()
            ids = {row for (row,) in store.execute(f"SELECT release_id FROM t_{name}")}
        if ids != released or len(set(found)) != len(found):
            yield f"table {name} has each release once"


@contextmanager
def public_outcomes() -> Iterator[None]:
    """Draw from the records, then release what is drawn from none with a chance of its own.

    Twins then release the same even where one record moves every value: any byte that tells them
    apart is none of a release. How often the real draw tries is part of what could tell.
    """
    with ExitStack() as patches:
        for kind in CLASSES:
            patches.enter_context(mock.patch.object(kind, "draw", _twice(kind.draw)))
        yield


def _twice(draw: Callable[..., Outcome]) -> Callable[..., Outcome]:
    def drawn(self: ReleaseKind, plan: Plan, statistic: Statistic, entropy: Entropy) -> Outcome:
        draw(self, plan, statistic, entropy)
        none: Any = empty(plan.query)
        if isinstance(statistic, tuple):  # one of each group
            none = (none,) * len(statistic)
        return draw(self, plan, none, ReplayedEntropy("public"))

    return drawn
