"""Marginals of a stream of tables: remembered, cold, on all at once, and yesterday's exact table.

    python -m tests.benchmarks.workload [--json] [--quick]

Every domain is measured as a configuration makes it: lists have a cell `(other)` and cuts one for
nulls, the kind is built from a section, and what is scored is the published rows.

`average` is the mean over all one- and two-way marginals of Σ|answer - truth|/n, `largest` the
largest |answer - truth|/n, both from day 31 on; `day_1` is the average of the first day and `first`
that of days 2 to 30. `cover` is the share of answers whose 95 % interval holds the truth, `cover_5`
that of cells of 5 records or more, and `width_5` the half width of theirs over the one that would
have held 95 % of them.

* streamdp: the kind `workload` as it is; `private` and `public` with that `choose`, `none` with
  `learner: none`.
* online: with `choose: online` and a tolerance of a tenth of the records, where its tests can tell
  that much; its `cover` is that of its proved bound where there is one.
* cold: the same mechanism without a memory, at the number of rounds that is best in hindsight.
* aim: AIM of smartnoise-synth on three days, at the rho that streamdp books for its price; it is
  told the number of records. Where it is not installed a row says so.
* mwem: MWEM of smartnoise-synth on the same days, at two queries, fewer than its own rule's thirty,
  which is far worse; told the number of records, and given the pure price.
* mst: MST of smartnoise-synth, as aim.
* noise: discrete Laplace noise on all marginals, Gaussian at a price in rho; `mean` and `ema` are
  the running mean, and the average that forgets a fifth a day, of these tables.
* zero: no release, and 0 for every count.
* yesterday: nothing released, nothing private: the exact table of the day before.

Constants were tuned on `flights`; those of what is remembered also on relabelled and shifted
streams of all domains here but the weeks and the destinations. When rounds look at the batch was
chosen on all domains of flights here but the weeks, and on random ones. `relabelled`
permutes the listed values of every column every day, so that nothing repeats: `ratio` is streamdp's
average over the better of cold's and none's from day 8 on, over three seeds. `shifted` permutes
them once, on day 31: the ratio of that day and of the five after, over cold at the rounds that are
best for all shifts of the domain together.
`peak_mb` is the most memory that the first two releases take beyond the counts.

`trips` (trips of the bases of a city, a number a day and base) and `hflights` (departures from
Houston in 2011, of the United States Bureau of Transportation Statistics) are read from the files
that the variables TRIPS and HFLIGHTS name, and left out without them; FLIGHTS names other flights
than the demonstration's, which lack the other columns.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np

from streamdp.kinds.spec import BuildContext
from streamdp.kinds.workload.build import build
from streamdp.kinds.workload.fitting.hypotheses import HypothesisState
from streamdp.kinds.workload.kind import WorkloadRelease
from streamdp.kinds.workload.section import WorkloadSection
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.privacy.events import rho_of
from streamdp.privacy.price import Price
from streamdp.types import Batch, FloatArray, IntArray, TableCounts
from tests.benchmarks.peers import aim, smartnoise
from tests.benchmarks.report import Row, main

DEMO = Path(__file__).parents[2] / "streamdp" / "demo"
FILES = {
    "flights": os.environ.get("FLIGHTS", str(DEMO / "flights.parquet")),
    "all columns": os.environ.get("FLIGHTS", ""),
    "trips": os.environ.get("TRIPS", ""),
    "hflights": os.environ.get("HFLIGHTS", ""),
}
PRICES = (
    *map(Price, (Fraction(1, 10), Fraction(3, 10), Fraction(1))),
    Price(Fraction(7, 400), "rho"),
)
ROUNDS = (1, 2, 3, 4, 5)
LEARNED, WARM = 30, 8
SEEDS = (1, 2, 3)
TOLERANCE = 0.1
FEW = 5
AIM_DAYS = (60, 160, 260)


class Cut(NamedTuple):
    """An axis of cuts: a number, and public cuts of it."""

    number: str
    cuts: tuple[float, ...]

    @property
    def sql(self) -> str:
        """SQL of the number of cuts that are not above, nulls one more."""
        below = " + ".join(f"({self.number} >= {cut})::int" for cut in self.cuts)
        return f"coalesce({below}, {len(self.cuts) + 1})"


def _cut(number: str, *cuts: float) -> Cut:
    return Cut(number, cuts)


DELAYS = (-20, -10, 0, 10, 30, 60)
DOMAINS: dict[str, tuple[str, str, tuple[str | Cut, ...]]] = {
    "flights": (
        "flights",
        "date",
        ("origin", "carrier", "greatest(hour, 4)", _cut("arrival_delay", *DELAYS)),
    ),
    "flights, weeks": (
        "flights",
        "date_trunc('week', date)",
        ("origin", "carrier", "greatest(hour, 4)", _cut("arrival_delay", *DELAYS)),
    ),
    "flights, other columns": (
        "all columns",
        "date",
        (
            "least(distance // 150, 15)",
            _cut("air_time", *range(40, 440, 40)),
            _cut("departure_delay", -8, -4, 0, 5, 20, 60),
            "coalesce(hash(tail_number) % 6, 6)",
        ),
    ),
    "flights, departures": (
        "all columns",
        "date",
        (
            "least(hour // 3, 7)",
            "coalesce(hash(dest) % 12, 12)",
            "least(distance // 400, 6)",
            _cut("departure_delay", -5, 0, 10, 45),
        ),
    ),
    "flights, with destinations": (
        "flights",
        "date",
        ("origin", "carrier", "greatest(hour, 4)", _cut("arrival_delay", *DELAYS), "dest"),
    ),
    "trips": (
        "trips",
        "date",
        ("least(floor(log2(v + 1)), 12)", "v % 10", "least(v // 100, 20)"),
    ),
    "hflights": (
        "hflights",
        "make_date(Year::int, Month::int, DayofMonth::int)",
        (
            "UniqueCarrier",
            "Origin",
            _cut("try_cast(DepTime AS double)", *range(500, 2400, 100)),
            _cut("try_cast(ArrDelay AS double)", *DELAYS),
        ),
    ),
    "hflights, other columns": (
        "hflights",
        "make_date(Year::int, Month::int, DayofMonth::int)",
        (
            "hash(Dest) % 14",
            _cut("try_cast(TaxiOut AS double)", 8, 11, 14, 18, 25),
            _cut("try_cast(Distance AS double)", 200, 400, 600, 800, 1000, 1500),
            "hash(TailNum) % 5",
        ),
    ),
}
"""Files, days and columns."""


def tables(domain: str) -> list[IntArray]:
    """The exact table of each day."""
    file, day, columns = DOMAINS[domain]
    parts = [each.sql if isinstance(each, Cut) else each for each in columns]
    named = ", ".join(f"{part} AS c{place}" for place, part in enumerate(parts))
    source = f"'{FILES[file]}'"
    if FILES[file].endswith(".csv"):  # a try_cast of its own columns would be the reader's type
        source = f"read_csv({source}, all_varchar = true, nullstr = ['NA', ''])"
    connection = duckdb.connect()
    found = connection.execute(
        f"SELECT {day} AS day, {named} FROM {source} ORDER BY day"
    ).fetchnumpy()
    codes, sizes = [], []
    for place, column in enumerate(columns):
        if isinstance(column, Cut):
            codes.append(found[f"c{place}"].astype(np.int64))
            sizes.append(len(column.cuts) + 2)
            continue
        values, code = np.unique(found[f"c{place}"].astype(str), return_inverse=True)
        codes.append(code)
        sizes.append(len(values))
    days, at = np.unique(found["day"].astype("datetime64[D]"), return_inverse=True)
    cells = np.ravel_multi_index(tuple(codes), tuple(sizes))
    length = int(np.prod(sizes))
    return [
        np.bincount(cells[at == number], minlength=length).astype(np.int64).reshape(sizes)
        for number in range(len(days))
    ]


def relabelled(
    stream: Sequence[IntArray], days: Iterable[int], seed: int = 7, unlisted: int = 0
) -> list[IntArray]:
    """The stream with the values of its columns permuted anew on some days.

    Args:
        stream: Tables.
        days: On which.
        seed: Of the chance.
        unlisted: Last cells of each axis, which stay.
    """
    generator, changes = np.random.default_rng(seed), set(days)
    orders: list[IntArray] = []
    found = []
    for number, table in enumerate(stream):
        if number in changes:
            orders = [
                np.append(generator.permutation(size - unlisted), range(size - unlisted, size))
                for size in table.shape
            ]
        moved = table
        for axis, order in enumerate(orders):
            moved = np.take(moved, order.astype(np.int64), axis=axis)
        found.append(moved)
    return found


@dataclass(frozen=True, slots=True)
class Stream:
    """Tables of a configured domain: the last cell of each axis is for what is not listed.

    Args:
        dimensions: As a configuration writes them.
        tables: One a day.
    """

    dimensions: Mapping[str, Mapping[str, list[str] | list[float]]]
    tables: Sequence[IntArray]

    @classmethod
    def of(cls, domain: str) -> Stream:
        """A domain of `DOMAINS`: lists get a cell `(other)`, in which there is nobody."""
        bare, columns = tables(domain), DOMAINS[domain][2]
        dimensions: dict[str, dict[str, list[str] | list[float]]] = {}
        for place, (column, size) in enumerate(zip(columns, bare[0].shape, strict=True)):
            if isinstance(column, Cut):
                dimensions[f"axis_{place}"] = {"cuts": [float(cut) for cut in column.cuts]}
            else:
                dimensions[f"axis_{place}"] = {"values": [str(value) for value in range(size)]}
        more = [(0, 0 if isinstance(column, Cut) else 1) for column in columns]
        return cls(dimensions, [np.pad(table, more) for table in bare])

    def days(self, days: slice) -> Stream:
        """Some of the days."""
        return replace(self, tables=self.tables[days])

    def relabelled(self, days: Iterable[int], seed: int = 7) -> Stream:
        """With the listed values of each axis permuted anew on some days."""
        return replace(self, tables=relabelled(self.tables, days, seed, unlisted=1))


@dataclass(frozen=True, slots=True)
class Score:
    """Of one day; `off` is each error over the half width, of cells of 5 records or more."""

    average: float
    largest: float
    cover: float = 0.0
    milliseconds: float = 0.0
    off: FloatArray | None = None


class Replay:
    """A mechanism on a stream of tables."""

    def __init__(self, stream: Stream, price: Price) -> None:
        self.stream = stream.tables
        self.rows = max(round(float(np.mean([table.sum() for table in stream.tables]))), 1)
        section = {
            "kind": "workload",
            "source": "s",
            price.measure: str(price.amount),
            "expected_rows": self.rows,
            "dimensions": stream.dimensions,
        }
        public: Any = None
        context = BuildContext("add-remove", 1, 1, "duckdb", public)
        self.kind = build(WorkloadSection.model_validate(section), context)
        self.mechanism = self.kind.mechanism
        self.workload = self.mechanism.workload

    def remembering(self, seed: int = 1, choose: str = "auto") -> list[Score]:
        """The kind as it is."""
        tolerance = max(round(TOLERANCE * self.rows), 1)
        mechanism = replace(self.mechanism, choose=choose, tolerance=tolerance)  # type: ignore[arg-type]
        return self._released(replace(self.kind, mechanism=mechanism), seed)

    def none(self, seed: int = 1) -> list[Score]:
        """With `learner: none`."""
        return self._released(replace(self.kind, learns=False), seed)

    def peak_mb(self) -> float:
        """The most memory of the first two releases."""
        memory = HypothesisState.empty(self.workload, self.mechanism.expected_rows)
        tracemalloc.start()
        for number, counts in enumerate(self._counts(range(2))):
            tracemalloc.reset_peak()
            entropy = PublicEntropy(f"peak:{number}")
            drawn = self.mechanism.draw(self.mechanism.design(memory), memory, counts, entropy)
            memory = memory.after(drawn.fit)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return round(peak / 1e6, 1)

    def cold(self, rounds: int, days: Sequence[int], seed: int = 2) -> list[Score]:
        """Every day from what is expected of a first one."""
        mechanism = replace(self.mechanism, rounds=rounds)
        return self._released(replace(self.kind, mechanism=mechanism, learns=False), seed, days)

    def best_cold(self, days: Sequence[int], seeds: Sequence[int] = (2,)) -> list[Score]:
        """At the number of rounds that is best in hindsight."""
        tried = [
            [score for seed in seeds for score in self.cold(rounds, days, seed)]
            for rounds in self.tried()
        ]
        return min(tried, key=average)

    def tried(self) -> tuple[int, ...]:
        """Numbers of rounds of which the best is taken."""
        return tuple(rounds for rounds in ROUNDS if rounds <= len(self.workload.items))

    def tells(self) -> bool:
        """Whether tests in turn can tell the tolerance; they have no price in rho."""
        if self.mechanism.loss == "rho":
            return False
        gate = replace(self.mechanism, choose="online").gate()
        return gate.margin <= max(round(TOLERANCE * self.rows), 1)

    def aim(self, days: Sequence[int]) -> list[Score]:
        """AIM at the rho that is booked for a release."""
        wanted = [item.axes for item in self.workload.items]
        return [
            _errors(counts, aim.marginals(self.stream[day], wanted, self.rho(), day))
            for day, counts in zip(days, self._counts(days), strict=True)
        ]

    def mst(self, days: Sequence[int]) -> list[Score]:
        """MST at the same rho."""
        wanted = [item.axes for item in self.workload.items]
        return [
            _errors(counts, smartnoise.mst(self.stream[day], wanted, self.rho(), day))
            for day, counts in zip(days, self._counts(days), strict=True)
        ]

    def mwem(self, days: Sequence[int]) -> list[Score]:
        """MWEM at the pure price."""
        wanted, epsilon = [item.axes for item in self.workload.items], float(self.mechanism.amount)
        return [
            _errors(counts, smartnoise.mwem(self.stream[day], wanted, epsilon, day))
            for day, counts in zip(days, self._counts(days), strict=True)
        ]

    def rho(self) -> float:
        """What is booked for a release."""
        memory = HypothesisState.empty(self.workload, self.mechanism.expected_rows)
        return float(rho_of(self.mechanism.event(self.mechanism.design(memory))))

    def noise(self, pace: Callable[[int], float] = lambda number: 1.0) -> list[Score]:
        """All marginals with noise of their number over the price, each day averaged into the last.

        Args:
            pace: Weight of a day by its number, from 1 on; 1 for the noisy tables themselves.
        """
        generator, items = np.random.default_rng(3), len(self.workload.items)
        amount, scores = float(self.mechanism.amount), []
        kept: list[FloatArray] = []

        def drawn(size: int) -> FloatArray:
            if self.mechanism.loss == "rho":
                return generator.normal(0.0, (items / (2 * amount)) ** 0.5, size)
            ratio = np.exp(-amount / items)
            one, other = (generator.geometric(1 - ratio, size) for _ in range(2))
            return np.asarray(one - other, dtype=np.float64)

        for number, counts in enumerate(self._counts()):
            noisy, weight = [count + drawn(len(count)) for count in counts], pace(number + 1)
            kept = kept or noisy
            kept = [old + weight * (new - old) for old, new in zip(kept, noisy, strict=True)]
            scores.append(_errors(counts, [np.maximum(each, 0.0) for each in kept]))
        return scores

    def zero(self) -> list[Score]:
        """0 for every count."""
        return [_errors(counts, [0 * count for count in counts]) for counts in self._counts()]

    def yesterday(self) -> list[Score]:
        """The exact table of the day before."""
        found = list(self._counts())
        return [_errors(today, before) for before, today in pairwise(found)]

    def _counts(self, days: Sequence[int] | None = None) -> Iterator[list[IntArray]]:
        for number in range(len(self.stream)) if days is None else days:
            table = self.stream[number]
            axes = range(table.ndim)
            yield [
                item.counts(table.sum(axis=tuple(axis for axis in axes if axis not in item.axes)))
                for item in self.workload.items
            ]

    def _released(
        self, kind: WorkloadRelease, seed: int, days: Sequence[int] | None = None
    ) -> list[Score]:
        """Plan, draw, learn, day after day; the published rows are scored."""
        state, scores = kind.init(), []
        numbers = range(len(self.stream)) if days is None else days
        for number, counts in zip(numbers, self._counts(days), strict=True):
            held = dict(zip((item.axes for item in self.workload.items), counts, strict=True))
            shapes = {item.axes: item.shape for item in self.workload.items}
            asked = kind.query().marginals
            statistic = TableCounts(tuple(held[axes].reshape(shapes[axes]) for axes in asked))
            plan = kind.plan(state, Batch("s", str(number)))
            start = time.perf_counter()
            outcome = kind.draw(plan, statistic, PublicEntropy(f"{seed}:{number}"))
            state = kind.learn(state, plan, outcome)
            seconds = time.perf_counter() - start
            scores.append(replace(_score(counts, outcome.rows[1:]), milliseconds=1e3 * seconds))
        return scores


def _score(counts: Sequence[IntArray], rows: Sequence[Mapping[str, Any]]) -> Score:
    """Errors and intervals of published rows, of all marginals in their order."""
    values, lower, upper = (
        np.array([row[name] for row in rows], dtype=np.float64)
        for name in ("value", "lower", "upper")
    )
    exact = np.concatenate(counts)
    errors = _errors(counts, np.split(values, np.cumsum([len(each) for each in counts])[:-1]))
    over = exact - values
    half = np.maximum(np.where(over > 0.0, upper - values, values - lower), 1e-3)
    held = (lower <= exact) & (exact <= upper)
    return replace(errors, cover=float(held.mean()), off=(np.abs(over) / half)[exact >= FEW])


def _errors(counts: Sequence[IntArray], answers: Sequence[FloatArray | IntArray]) -> Score:
    missed = [np.abs(answer - count) for answer, count in zip(answers, counts, strict=True)]
    rows = max(int(counts[0].sum()), 1)
    totals = [float(each.sum()) for each in missed]
    return Score(float(np.mean(totals)) / rows, max(float(each.max()) for each in missed) / rows)


def average(scores: Sequence[Score]) -> float:
    """Of their averages."""
    return float(np.mean([each.average for each in scores]))


def rows(quick: bool) -> Iterable[Row]:
    """Domains, then streams that do not repeat."""
    for domain in DOMAINS:
        if not FILES[DOMAINS[domain][0]]:
            continue
        large = domain == "flights, with destinations"
        if quick and large:
            continue
        stream = Stream.of(domain).days(slice(60 if quick or large else None))
        for price in (PRICES[0], PRICES[-1]) if quick else PRICES:
            yield from _stable(domain, stream, price, large)
            if domain == "flights" and not quick:
                yield from _peers(domain, stream, price)
            if not large and domain != "flights, weeks":
                yield from _unstable(domain, stream.days(slice(60 if quick else 120)), price)


def _stable(domain: str, stream: Stream, price: Price, large: bool) -> Iterator[Row]:
    replay, days = Replay(stream, price), range(LEARNED, len(stream.tables), 5)
    contenders = {"streamdp": replay.remembering()}
    if domain == "flights":
        for seed in SEEDS[1:]:
            contenders[f"streamdp, seed {seed}"] = replay.remembering(seed)
    if not large:
        for choose in ("private", "public"):
            contenders[f"streamdp, {choose}"] = replay.remembering(choose=choose)
        contenders["none"] = replay.none()
    if replay.tells() and not large:
        contenders["streamdp, online"] = replay.remembering(choose="online")
    contenders |= {
        "noise": replay.noise(),
        "noise, mean": replay.noise(lambda number: 1.0 / number),
        "noise, ema": replay.noise(lambda number: 0.2),
        "zero": replay.zero(),
    }
    peak = replay.peak_mb()
    for who, scores in contenders.items():
        row = _row(who, domain, price, scores[LEARNED:], scores[:LEARNED])
        yield {**row, "peak_mb": peak if who == "streamdp" else None}
    yield _row("cold", domain, price, replay.best_cold(days))
    yield _row("yesterday", domain, price, replay.yesterday()[LEARNED - 1 :])


def _peers(domain: str, stream: Stream, price: Price) -> Iterator[Row]:
    if why := aim.missing():
        yield {**_row("aim", domain, price, []), "who": f"aim, skipped: {why}"}
    else:
        yield _row("aim", domain, price, Replay(stream, price).aim(AIM_DAYS))
    if why := smartnoise.missing():
        yield {**_row("mst", domain, price, []), "who": f"mwem and mst, skipped: {why}"}
        return
    yield _row("mst", domain, price, Replay(stream, price).mst(AIM_DAYS))
    if price.measure == "epsilon":
        yield _row("mwem", domain, price, Replay(stream, price).mwem(AIM_DAYS))


def _unstable(domain: str, stream: Stream, price: Price) -> Iterator[Row]:
    length = len(stream.tables)
    every = Replay(stream.relabelled(range(length)), price)
    scores = [score for seed in SEEDS for score in every.remembering(seed)[WARM:]]
    none = [score for seed in SEEDS for score in every.none(seed)[WARM:]]
    cold = min(every.best_cold(range(WARM, length), SEEDS), none, key=average)
    row = _row("streamdp, relabelled", domain, price, scores)
    yield {**row, "ratio": round(average(scores) / average(cold), 3)}
    ours: list[list[Score]] = []
    theirs: dict[int, list[list[Score]]] = {rounds: [] for rounds in every.tried()}
    for start in range(0, length - LEARNED - 5, 10):
        days = stream.days(slice(start, start + LEARNED + 6))
        replay = Replay(days.relabelled([LEARNED], start), price)
        ours.append(replay.remembering(start)[LEARNED:])
        for rounds, runs in theirs.items():
            runs.append(replay.cold(rounds, range(LEARNED, len(days.tables))))
    best = min(theirs.values(), key=lambda runs: average([each for run in runs for each in run]))
    for name, part in (("day of the shift", slice(0, 1)), ("five days on", slice(1, 6))):
        scores = [each for run in ours for each in run[part]]
        cold = [each for run in best for each in run[part]]
        row = _row(f"streamdp, {name}", domain, price, scores)
        yield {**row, "ratio": round(average(scores) / average(cold), 3)}


def _row(
    who: str, domain: str, price: Price, scores: Sequence[Score], first: Sequence[Score] = ()
) -> Row:
    off = [each.off for each in scores if each.off is not None]
    many = np.concatenate(off) if off else np.zeros(0)
    return {
        "who": who,
        "domain": domain,
        "epsilon": float(price.amount) if price.measure == "epsilon" else None,
        "rho": float(price.amount) if price.measure == "rho" else None,
        "average": _mean([each.average for each in scores], 4),
        "largest": _mean([each.largest for each in scores], 4),
        "days": len(scores),
        "day_1": _mean([each.average for each in first[:1]], 4),
        "first": _mean([each.average for each in first[1:]], 4),
        "cover": _mean([each.cover for each in scores], 3),
        "cover_5": round(float((many <= 1.0).mean()), 3) if many.size else None,
        "width_5": round(float(1.0 / np.quantile(many, 0.95)), 2) if many.size else None,
        "ms": _mean([each.milliseconds for each in scores], 1),
        "ratio": None,
        "peak_mb": None,
    }


def _mean(values: Sequence[float], decimals: int) -> float | None:
    return round(float(np.mean(values)), decimals) or None if values else None


if __name__ == "__main__":
    main("Marginals of a stream of tables", rows)
