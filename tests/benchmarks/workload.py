"""Marginals of a stream of tables: remembered, cold, on all at once, and yesterday's exact table.

    python -m tests.benchmarks.workload [--json] [--quick]

`average` is the mean over all one- and two-way marginals of Σ|answer - truth|/n, `largest` the
largest |answer - truth|/n, both from day 31 on; `first` is the average of the first thirty days.
`cover` is the share of answers whose 95 % interval holds the truth.

* streamdp: the kind `workload` as it is; `public` with `choose: public`.
* online: with `choose: online` and a tolerance of a tenth of the records, where its tests can tell
  that much; its `cover` is that of its proved bound where there is one.
* cold: the same mechanism without a memory, at the number of rounds that is best in hindsight.
* aim: AIM of smartnoise-synth on three days, at the rho that streamdp books for its price; it is
  told the number of records. Where it is not installed a row says so.
* mwem: MWEM of smartnoise-synth on the same days, at two queries, fewer than its own rule's thirty,
  which is far worse; told the number of records, and given the pure price.
* mst: MST of smartnoise-synth, as aim.
* noise: discrete Laplace noise on all marginals, Gaussian at a price in rho.
* yesterday: nothing released, nothing private: the exact table of the day before.

Constants were tuned on `flights`; those of what is remembered also on relabelled and shifted
streams of all domains here but the weeks and the destinations. `relabelled` permutes the values of
every column every day, so that nothing repeats: `ratio` is streamdp's average over cold's from day
8 on, over three seeds. `shifted` permutes them once, on day 31: the ratio of that day and of the
five after, over cold at the rounds that are best for all shifts of the domain together.
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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np

from streamdp.kinds.workload.drawing.weights import Drawn, PrivateWeights
from streamdp.kinds.workload.fitting.hypotheses import UNIFORM, Memory
from streamdp.kinds.workload.fitting.marginals import Workload, marginals_up_to
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.privacy.events import rho_of
from streamdp.privacy.price import Price
from streamdp.types import FloatArray, IntArray
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
AIM_DAYS = (60, 160, 260)


def _cut(expression: str, *cuts: float) -> str:
    """SQL of the number of cuts that are not above, nulls one more."""
    below = " + ".join(f"({expression} >= {cut})::int" for cut in cuts)
    return f"coalesce({below}, {len(cuts) + 1})"


DELAYS = (-20, -10, 0, 10, 30, 60)
DOMAINS = {
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
    named = ", ".join(f"{column} AS c{place}" for place, column in enumerate(columns))
    source = f"'{FILES[file]}'"
    if FILES[file].endswith(".csv"):  # a try_cast of its own columns would be the reader's type
        source = f"read_csv({source}, all_varchar = true, nullstr = ['NA', ''])"
    connection = duckdb.connect()
    found = connection.execute(
        f"SELECT {day} AS day, {named} FROM {source} ORDER BY day"
    ).fetchnumpy()
    codes, sizes = [], []
    for place in range(len(columns)):
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


def relabelled(stream: Sequence[IntArray], days: Iterable[int], seed: int = 7) -> list[IntArray]:
    """The stream with the values of its columns permuted anew on some days."""
    generator, changes = np.random.default_rng(seed), set(days)
    orders: list[IntArray] = []
    found = []
    for number, table in enumerate(stream):
        if number in changes:
            orders = [generator.permutation(size) for size in table.shape]
        moved = table
        for axis, order in enumerate(orders):
            moved = np.take(moved, order, axis=axis)
        found.append(moved)
    return found


@dataclass(frozen=True, slots=True)
class Score:
    """Of one day."""

    average: float
    largest: float
    cover: float
    milliseconds: float


class Replay:
    """A mechanism on a stream of tables."""

    def __init__(self, stream: Sequence[IntArray], price: Price) -> None:
        self.stream = stream
        self.workload = Workload.of(stream[0].shape, marginals_up_to(stream[0].ndim, 2))
        rows = round(float(np.mean([table.sum() for table in stream])))
        self.mechanism = PrivateWeights(
            self.workload,
            price.amount,
            max(rows, 1),
            tolerance=max(round(TOLERANCE * rows), 1),
            loss=price.measure,
        )

    def remembering(self, seed: int = 1, choose: str = "private") -> list[Score]:
        """The kind as it is."""
        mechanism = replace(self.mechanism, choose=choose)  # type: ignore[arg-type]
        memory, scores = Memory.empty(self.workload, mechanism.expected_rows), []
        for number, counts in enumerate(self._counts()):
            entropy, start = PublicEntropy(f"{seed}:{number}"), time.perf_counter()
            drawn = mechanism.draw(mechanism.design(memory), memory, counts, entropy)
            memory = memory.after(drawn.fit)
            scores.append(self._score(counts, drawn, time.perf_counter() - start))
        return scores

    def peak_mb(self) -> float:
        """The most memory of the first two releases."""
        memory = Memory.empty(self.workload, self.mechanism.expected_rows)
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
        """Every day from the uniform distribution over the expected rows."""
        mechanism = replace(self.mechanism, rounds=rounds)
        first = Memory.empty(self.workload, mechanism.expected_rows)
        memory = replace(first, releases=1, evidence=(0.0, -1e9, -1e9))
        scores = []
        for number, counts in enumerate(self._counts(days)):
            entropy = PublicEntropy(f"cold {seed}:{number}")
            drawn = mechanism.draw(mechanism.design(memory), memory, counts, entropy)
            assert drawn.fit.hypothesis == UNIFORM
            scores.append(self._score(counts, drawn, 0.0))
        return scores

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
        return gate.margin <= self.mechanism.tolerance

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
        memory = Memory.empty(self.workload, self.mechanism.expected_rows)
        return float(rho_of(self.mechanism.event(self.mechanism.design(memory))))

    def noise(self, days: Sequence[int], seed: int = 3) -> list[Score]:
        """All marginals with noise of their number over the price."""
        generator, items = np.random.default_rng(seed), len(self.workload.items)
        amount, scores = float(self.mechanism.amount), []

        def drawn(size: int) -> FloatArray:
            if self.mechanism.loss == "rho":
                return generator.normal(0.0, (items / (2 * amount)) ** 0.5, size)
            ratio = np.exp(-amount / items)
            one, other = (generator.geometric(1 - ratio, size) for _ in range(2))
            return np.asarray(one - other, dtype=np.float64)

        for counts in self._counts(days):
            noisy = [count + drawn(len(count)) for count in counts]
            scores.append(_errors(counts, noisy))
        return scores

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

    def _score(self, counts: Sequence[IntArray], drawn: Drawn, seconds: float) -> Score:
        fit = drawn.fit
        answers = [fit.distribution.masses(item) for item in self.workload.items]
        held = []
        for place, (answer, count) in enumerate(zip(answers, counts, strict=True)):
            uniform = fit.hypothesis == UNIFORM
            half = fit.spread.half_widths(self.workload, place, answer, drawn.measured, uniform)
            if place in drawn.passed:
                half = drawn.passed[place].around(answer)
            held.append(np.abs(answer - count) <= half)
        cover = float(np.concatenate(held).mean())
        return replace(_errors(counts, answers), cover=cover, milliseconds=1e3 * seconds)


def _errors(counts: Sequence[IntArray], answers: Sequence[FloatArray | IntArray]) -> Score:
    missed = [np.abs(answer - count) for answer, count in zip(answers, counts, strict=True)]
    rows = max(int(counts[0].sum()), 1)
    totals = [float(each.sum()) for each in missed]
    return Score(float(np.mean(totals)) / rows, max(float(e.max()) for e in missed) / rows, 0, 0)


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
        stream = tables(domain)[: 60 if quick or large else None]
        for price in (PRICES[0], PRICES[-1]) if quick else PRICES:
            yield from _stable(domain, stream, price, large)
            if domain == "flights" and not quick:
                yield from _peers(domain, stream, price)
            if not large and domain != "flights, weeks":
                yield from _unstable(domain, stream[:60] if quick else stream[:120], price)


def _stable(domain: str, stream: Sequence[IntArray], price: Price, large: bool) -> Iterator[Row]:
    replay, days = Replay(stream, price), range(LEARNED, len(stream), 5)
    contenders = {"streamdp": replay.remembering()}
    if not large:
        contenders["streamdp, public"] = replay.remembering(choose="public")
    if replay.tells() and not large:
        contenders["streamdp, online"] = replay.remembering(choose="online")
    peak = replay.peak_mb()
    for who, scores in contenders.items():
        row = _row(who, domain, price, scores[LEARNED:], average(scores[:LEARNED]))
        yield {**row, "peak_mb": peak if who == "streamdp" else None}
    yield _row("cold", domain, price, replay.best_cold(days))
    yield _row("noise", domain, price, replay.noise(days))
    yield _row("yesterday", domain, price, replay.yesterday()[LEARNED - 1 :])


def _peers(domain: str, stream: Sequence[IntArray], price: Price) -> Iterator[Row]:
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


def _unstable(domain: str, stream: Sequence[IntArray], price: Price) -> Iterator[Row]:
    every = Replay(relabelled(stream, range(len(stream))), price)
    scores = [score for seed in SEEDS for score in every.remembering(seed)[WARM:]]
    cold = every.best_cold(range(WARM, len(stream)), SEEDS)
    row = _row("streamdp, relabelled", domain, price, scores)
    yield {**row, "ratio": round(average(scores) / average(cold), 3)}
    ours: list[list[Score]] = []
    theirs: dict[int, list[list[Score]]] = {rounds: [] for rounds in every.tried()}
    for start in range(0, len(stream) - LEARNED - 5, 10):
        part = relabelled(stream[start : start + LEARNED + 6], [LEARNED], start)
        replay = Replay(part, price)
        ours.append(replay.remembering(start)[LEARNED:])
        for rounds, runs in theirs.items():
            runs.append(replay.cold(rounds, range(LEARNED, len(part))))
    best = min(theirs.values(), key=lambda runs: average([each for run in runs for each in run]))
    for name, days in (("day of the shift", slice(0, 1)), ("five days on", slice(1, 6))):
        scores = [each for run in ours for each in run[days]]
        cold = [each for run in best for each in run[days]]
        row = _row(f"streamdp, {name}", domain, price, scores)
        yield {**row, "ratio": round(average(scores) / average(cold), 3)}


def _row(
    who: str, domain: str, price: Price, scores: Sequence[Score], first: float | None = None
) -> Row:
    return {
        "who": who,
        "domain": domain,
        "epsilon": float(price.amount) if price.measure == "epsilon" else None,
        "rho": float(price.amount) if price.measure == "rho" else None,
        "average": _mean([each.average for each in scores], 4),
        "largest": _mean([each.largest for each in scores], 4),
        "days": len(scores),
        "first": None if first is None else round(first, 4),
        "cover": _mean([each.cover for each in scores], 3),
        "ms": _mean([each.milliseconds for each in scores], 1),
        "ratio": None,
        "peak_mb": None,
    }


def _mean(values: Sequence[float], decimals: int) -> float | None:
    return round(float(np.mean(values)), decimals) or None if values else None


if __name__ == "__main__":
    main("Marginals of a stream of tables", rows)
