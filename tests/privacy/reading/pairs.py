"""Two data sets, one of them with one record more, and what `streamdp run --once` makes of each.

The price of a release is so high that its noise is zero but with a chance of e^-60, so published
numbers are what was counted, and the command that is run is the one that everybody runs.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.errors import StreamdpError

CONFIGURATION = """
store: {{path: store.db}}
privacy:
  unit: {unit}
  allow_large_epsilon: true
  caps: {{batch: 1000, lifetime: 1000000, delta: {{batch: 1e-6, lifetime: 1e-3}}}}
sources:
  s: {{{source}}}
releases:
  job: {{kind: {kind}, source: s, epsilon: 60, sinks: [file], {release}}}
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
        kind: Kind of the release, and keys of its own.
        unit: Of privacy, in YAML.
        place: Where the record lies, if that matters.
        base: Equal for pairs that are one data set without the record, so that it is read once.
        most: Records that may be counted more or less.
        served: Whether the data set without the record is released; else it is refused. None for
            types that are one or the other.
        written: Whether the writer can write the record.
        together: Whether a run may have many such data sets: each is a file in the source's folder,
            and a batch of its own.
    """

    format: str
    writer: str
    role: str
    record: str
    write: Callable[[Path, bool], None]
    source: str
    release: str = COUNT
    kind: str = "statistics, smoothed: false"
    unit: str = "record"
    place: str = ""
    base: Hashable = None
    most: int = 1
    served: bool | None = True
    written: Callable[[], bool] = lambda: True
    together: bool = False

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
        said: What was printed.
    """

    status: int
    ledger: tuple[str, ...]
    published: dict[str, float] = field(default_factory=dict)
    said: str = field(default="", compare=False)

    def distance(self, other: Outcome) -> float | None:
        """Sum of the differences of all numbers; None where exit codes or rows differ."""
        if (self.status, self.ledger) != (other.status, other.ledger):
            return None
        if self.published.keys() != other.published.keys():
            return None
        return sum(abs(value - other.published[key]) for key, value in self.published.items())

    @property
    def counts(self) -> bool:
        """Whether any record is in it."""
        return any(self.published.values())

    def __str__(self) -> str:
        parts = [f"exit {self.status}", *(each for each in self.ledger if each == "burn")]
        return ", ".join([*parts, *([self._counted()] if self.published else [])])

    def _counted(self) -> str:
        return f"counted {sum(self.published.values()):.0f}"


class SignalledError(Exception):
    """A run was stopped by a signal, so what it shows is not what the data set makes of it."""


class TellsNothingError(Exception):
    """The data set without the record is refused, or served and should not be, or not counted.

    Where no record is counted on either side, any two data sets look alike.
    """


def run_once(pair: Pair, *, extra: bool) -> Outcome:
    """The outcome of one of the two data sets, in a folder of its own.

    Raises:
        SignalledError: The run was stopped from outside.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        pair.write(folder, extra)
        status, said = _run(folder, pair, pair.source)
        published = _published(folder / "out.jsonl")
        every = {key: value for numbers in published.values() for key, value in numbers.items()}
        purposes = _purposes(folder / "store.db")
        return Outcome(status, tuple(sorted(purpose for _, purpose in purposes)), every, said)


def run_together(sides: Sequence[tuple[Pair, bool]]) -> list[Outcome] | None:
    """Outcomes of many data sets, with the record or without, each a batch of one run.

    Returns:
        None where a batch is not released or has other rows in the ledger than the others: which
        of them it was is found by runs of their own.

    Raises:
        SignalledError: The run was stopped from outside.
    """
    with TemporaryDirectory() as name:
        folder, first = Path(name), sides[0][0]
        for number, (pair, extra) in enumerate(sides):
            place = folder / f"{number:04}"
            place.mkdir()
            pair.write(place, extra)
        status, said = _run(folder, first, first.source.replace("path: '", "path: '*/"))
        published = _published(folder / "out.jsonl")
        ledger: dict[str, list[str]] = {each: [] for each in published}
        for batch, purpose in _purposes(folder / "store.db"):
            for each in [batch] if batch else published:
                ledger.setdefault(each, []).append(purpose)
        rows = {tuple(sorted(each)) for each in ledger.values()}
        if status or len(published) < len(sides) or len(rows) != 1:
            return None
        purposes = rows.pop()
        return [Outcome(0, purposes, published[batch], said) for batch in sorted(published)]


def _run(folder: Path, pair: Pair, source: str) -> tuple[int, str]:
    """Exit code of `streamdp run --once` in a folder, and what it printed."""
    path = folder / "config.yaml"
    keys = {"source": source, "release": pair.release, "unit": pair.unit, "kind": pair.kind}
    path.write_text(CONFIGURATION.format(**keys))
    ended = CliRunner().invoke(cli, ["run", "--once", "-c", str(path)])
    error = ended.exception
    if "stopped by a signal" in ended.output:
        raise SignalledError(f"{pair.name}: {ended.output}")
    said = f"{ended.output}{error if isinstance(error, StreamdpError) else ''}"
    return error.exit_code if isinstance(error, StreamdpError) else ended.exit_code, said


def _published(out: Path) -> dict[str, dict[str, float]]:
    """Numbers by measure, cell and group, of each batch; of a file in a folder its name is said."""
    found: dict[str, dict[str, float]] = {}
    for release in map(json.loads, out.read_text().splitlines() if out.exists() else []):
        batch = release["batch"]
        numbers = found.setdefault(batch, {})
        for row in release["rows"]:
            if "value" not in row:  # a key: one that was found just now has no count, but records
                texts = [row[name] for name in row if name not in ("found", "flag")]
                key = [each for each in texts if isinstance(each, str)]
                numbers[json.dumps([batch.split("/")[-1], *key])] = (
                    1 if row["count"] is None else row["count"]
                )
            elif (value := row["value"]) is not None:
                labels = (each for each in row.values() if isinstance(each, str))
                numbers[json.dumps([batch.split("/")[-1], *labels])] = value
    return found


def _purposes(store: Path) -> list[tuple[str | None, str]]:
    """Rows of a ledger: the batch, if it is about one, and the purpose."""
    if not store.exists():
        return []
    with sqlite3.connect(store) as connection:
        return connection.execute("SELECT batch, purpose FROM ledger").fetchall()


@dataclass(slots=True)
class Compared:
    """Compares pairs; outcomes without the record are kept by the base of a pair.

    Args:
        control: Of pairs that run together, each so manieth runs by itself too.
        chunk: Pairs that run together.
    """

    control: int = 50
    chunk: int = 48
    _kept: dict[Hashable, Outcome] = field(default_factory=dict)

    def __call__(self, pair: Pair) -> tuple[Outcome, Outcome, bool]:
        """Outcomes without and with the record, and whether they tell the data sets apart.

        Raises:
            TellsNothingError: The data set without the record is refused, or served and should not
                be, or nothing of it is counted.
        """
        without = self._kept.get(pair.base) if pair.base is not None else None
        if without is None:
            without = run_once(pair, extra=False)
        if pair.base is not None:
            self._kept[pair.base] = without
        served = without.status == 0
        if pair.served is not None and (served != pair.served or served > without.counts):
            nothing = f"{pair.name}: this data set tells nothing: {without}: {without.said}"
            raise TellsNothingError(nothing)
        extra = run_once(pair, extra=True)
        return without, extra, are_told(pair, without, extra)

    def every(self, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, str, str, bool]]:
        """Compare pairs, many in one run where that may be.

        A data set that tells nothing counts as told apart. So does a pair that runs together with
        others and is not the same by itself, where it runs by itself: told apart in the common run,
        or a control.
        """
        number = 0
        for (together, *_), some in groupby(
            pairs, lambda pair: (pair.together, pair.source, pair.release, pair.kind, pair.unit)
        ):
            if not together:
                for pair in some:
                    yield self._alone(pair)
                continue
            waiting = list(some)
            for start in range(0, len(waiting), self.chunk):
                part = waiting[start : start + self.chunk]
                for pair, without, extra in self._common(part):
                    number += 1
                    if without is None or extra is None or not without.counts:
                        yield self._alone(pair)
                    elif number % self.control and not are_told(pair, without, extra):
                        yield pair, str(without), str(extra), False
                    else:
                        alone = self._alone(pair)
                        same = alone[1:3] == (str(without), str(extra))
                        yield *alone[:3], alone[3] or not same

    def _common(
        self, pairs: Sequence[Pair]
    ) -> Iterator[tuple[Pair, Outcome | None, Outcome | None]]:
        """Outcomes of pairs that run together; those without the record once for each base."""
        bases = {pair.base: pair for pair in reversed(pairs)}
        sides = [(pair, False) for pair in bases.values()] + [(pair, True) for pair in pairs]
        found = run_together(sides)
        if found is None:
            yield from ((pair, None, None) for pair in pairs)
            return
        without = dict(zip(bases, found, strict=False))
        for pair, extra in zip(pairs, found[len(bases) :], strict=True):
            yield pair, without[pair.base], extra

    def _alone(self, pair: Pair) -> tuple[Pair, str, str, bool]:
        try:
            without, extra, told = self(pair)
        except TellsNothingError as error:
            return pair, str(error), "", True
        return pair, str(without), str(extra), told


def are_told(pair: Pair, without: Outcome, extra: Outcome) -> bool:
    """Whether two outcomes tell the data sets of a pair apart."""
    distance = without.distance(extra)
    return distance is None or distance > pair.most
