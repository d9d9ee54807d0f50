"""Two data sets, one of them with one record more, and what `streamdp run --once` makes of each.

The price of a release is so high that its noise is zero but with a chance of e^-60, so published
numbers are what was counted, and the command that is run is the one that everybody runs.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.errors import StreamdpError

CONFIGURATION = """
store: {{path: store.db}}
privacy: {{unit: {unit}, allow_large_epsilon: true, caps: {{batch: 1000, lifetime: 1000000}}}}
sources:
  s: {{{source}}}
releases:
  job: {{kind: statistics, source: s, epsilon: 60, smoothed: false, sinks: [file], {release}}}
sinks:
  file: {{kind: jsonl, path: out.jsonl}}
"""
"""Files of a data set lie in the same folder."""

COUNT = "measures: {records: count}"


@dataclass(frozen=True, slots=True)
class Pair:
    """A data set, and the same with one record more.

    Args:
        format: Of the data set, as its table in PRIVACY.md names it.
        writer: What wrote it.
        role: Of the column that the record is hostile in: value, unit, group, time or condition.
        record: What is odd about the record.
        write: Writes the data set into a folder, with the record if it is told so.
        source: Keys of the source in YAML, within braces.
        release: Keys of the release in YAML, within braces.
        unit: Of privacy, in YAML.
        place: Where the record lies, if that matters.
        base: Equal for pairs that are one data set without the record, so that it is read once.
        most: Records that may be counted more or less.
        served: Whether the data set without the record is released; else it is refused. None for
            types that are one or the other.
        written: Whether the writer can write the record.
    """

    format: str
    writer: str
    role: str
    record: str
    write: Callable[[Path, bool], None]
    source: str
    release: str = COUNT
    unit: str = "record"
    place: str = ""
    base: Hashable = None
    most: int = 1
    served: bool | None = True
    written: Callable[[], bool] = lambda: True

    @property
    def name(self) -> str:
        """What is printed of it and chosen by."""
        parts = (self.format, self.writer, self.role, self.record, self.place)
        return " / ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that a run shows of a data set.

    Args:
        status: Exit code.
        ledger: Purposes of its rows: a burn is one.
        published: Numbers by batch, measure, cell and group.
    """

    status: int
    ledger: tuple[str, ...]
    published: dict[str, float] = field(default_factory=dict)

    def distance(self, other: Outcome) -> float | None:
        """Sum of the differences of all numbers; None where exit codes or rows differ."""
        if (self.status, self.ledger) != (other.status, other.ledger):
            return None
        if self.published.keys() != other.published.keys():
            return None
        return sum(abs(value - other.published[key]) for key, value in self.published.items())

    def __str__(self) -> str:
        parts = [f"exit {self.status}", *(each for each in self.ledger if each == "burn")]
        return ", ".join([*parts, *([self._counted()] if self.published else [])])

    def _counted(self) -> str:
        return f"counted {sum(self.published.values()):.0f}"


def run_once(pair: Pair, *, extra: bool) -> Outcome:
    """The outcome of one of the two data sets, in a folder of its own."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        pair.write(folder, extra)
        path = folder / "config.yaml"
        keys = {"source": pair.source, "release": pair.release, "unit": pair.unit}
        path.write_text(CONFIGURATION.format(**keys))
        ended = CliRunner().invoke(cli, ["run", "--once", "-c", str(path)])
        error = ended.exception
        status = error.exit_code if isinstance(error, StreamdpError) else ended.exit_code
        out = folder / "out.jsonl"
        lines = out.read_text().splitlines() if out.exists() else []
        published = {
            json.dumps([release["batch"], *(v for v in row.values() if isinstance(v, str))]): value
            for release in map(json.loads, lines)
            for row in release["rows"]
            if (value := row.get("value")) is not None
        }
        return Outcome(status, _purposes(folder / "store.db"), published)


class TellsNothingError(Exception):
    """The data set without the record is refused, or is served and should not be."""


@dataclass(slots=True)
class Compared:
    """Compares pairs; outcomes without the record are kept by the base of a pair."""

    _kept: dict[Hashable, Outcome] = field(default_factory=dict)

    def __call__(self, pair: Pair) -> tuple[Outcome, Outcome, bool]:
        """Outcomes without and with the record, and whether they tell the data sets apart.

        Raises:
            TellsNothingError: The data set without the record is refused, or served and should not
                be.
        """
        without = self._kept.get(pair.base) if pair.base is not None else None
        if without is None:
            without = run_once(pair, extra=False)
        if pair.base is not None:
            self._kept[pair.base] = without
        if pair.served is not None and (without.status == 0) != pair.served:
            raise TellsNothingError(f"{pair.name}: this data set tells nothing: {without}")
        extra = run_once(pair, extra=True)
        distance = without.distance(extra)
        return without, extra, distance is None or distance > pair.most


def _purposes(store: Path) -> tuple[str, ...]:
    if not store.exists():
        return ()
    with sqlite3.connect(store) as connection:
        found = connection.execute("SELECT purpose FROM ledger ORDER BY 1").fetchall()
    return tuple(purpose for (purpose,) in found)
