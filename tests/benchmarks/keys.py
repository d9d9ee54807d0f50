"""Keys of a year of flights: how much is found and counted, against thresholds without a memory.

The production kind and DuckDB on the flights of each window, from the first batch on; delta 1e-9 a
window, `at_least` 5, a flight is a unit. `covered` is the share of the flights of the seven days up
to a day whose key was known by then, `keys` how many were known after 30 days. Beside them stand
OpenDP's threshold (Laplace noise above 1 + ln(1/2δ)/ε) and PipelineDP's (truncated geometric), on
each day alone at the same epsilon and delta, by their formulas: what the list of day 30 holds, and
what all 30 lists together do. That union lies nearer, since it tries each key anew on 30 days, and
it costs 30 times the epsilon and delta where windows of a week cost 5 times. `peak_mb` is the most
memory of a process of its own. Spark is asked the first two questions: where every unit is over its
bound it takes minutes. `invented` counts published keys that no flight has.
"""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from random import Random

import duckdb
import numpy as np

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.limits import Limits
from streamdp.backends.spark import SparkBackend
from streamdp.backends.sql.relation import Relation
from streamdp.kinds.keys.kind import Keys, keys_of
from streamdp.mechanisms.key_selection import ONE, chances, selection_at
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.privacy.price import Price
from streamdp.types import Batch, FloatArray, Key, KeyCounts, KeyQuery, UnitBound, due_together
from tests.benchmarks.flights import PATH
from tests.benchmarks.report import Row, main
from tests.benchmarks.statistics import COUNTS, a_year, counts_by_day, kind_of
from tests.contract.servers import java

DELTA = Fraction(1, 10**9)
AT_LEAST = 5
DAY = 86_400
FIRST = int(datetime(2013, 1, 1, tzinfo=UTC).timestamp())
DAYS = tuple(
    Batch("flights", f"{day:03}", FIRST + day * DAY, FIRST + (day + 1) * DAY) for day in range(365)
)
STREAMS = {
    "destinations": ("dest",),
    "carrier-routes": ("carrier", "origin", "dest"),
    "tail numbers": ("tail_number",),
}
PRICES = (
    Price(Fraction(3, 10)),
    Price(Fraction(1)),
    Price(Fraction(9, 200), "rho"),
    Price(Fraction(1, 2), "rho"),
)
AFTER = (7, 30, 365)

Counts = list[dict[Key, int]]


def rows(quick: bool) -> Iterator[Row]:
    """Coverage by stream, window and price; thresholds alone; counts; time."""
    for name, columns in STREAMS.items():
        truth = by_day(columns)
        for price in PRICES[1:2] if quick else PRICES:
            for window in (7,) if quick else (1, 7, 28):
                yield found(name, columns, price, window, truth, 60 if quick else 365)
            if price.measure == "epsilon":
                yield from alone(name, truth, price.amount)
    yield from counted(quick)
    yield from drawn(quick)
    yield from asked(quick)
    yield remembered(quick)


def by_day(columns: tuple[str, ...]) -> Counts:
    """Flights of each day by key."""
    listed = ", ".join(columns)
    known = " AND ".join(f"{column} IS NOT NULL" for column in columns)
    counts: Counts = [{} for _ in DAYS]
    for day, *key, n in duckdb.execute(
        f"SELECT date - DATE '2013-01-01', {listed}, count(*) FROM '{PATH}' WHERE {known}"
        f" GROUP BY date, {listed}"
    ).fetchall():
        counts[day][tuple(key)] = n
    return counts


def found(
    name: str, columns: tuple[str, ...], price: Price, window: int, truth: Counts, length: int
) -> Row:
    """A year of production, window after window."""
    kind = Keys(columns, price, DELTA, at_least=AT_LEAST, window=window)
    backend, entropy, state = (
        DuckDBBackend(PATH, "parquet", "date"),
        OperatingSystemEntropy(),
        kind.init(),
    )
    known: dict[Key, int] = {}
    for batch in due_together(DAYS[:length], (), window):
        plan = kind.plan(state, batch)
        outcome = kind.draw(plan, backend.answer(plan.query, batch), entropy)
        state = kind.learn(state, plan, outcome)
        for key in keys_of(state["found"]):
            known.setdefault(key, int(batch.key) + 1)
    real = {key for day in truth for key in day}
    covered = {
        f"covered_{day}": covering({k for k, at in known.items() if at <= day}, truth, day)
        if day <= length
        else None
        for day in AFTER
    }
    return {
        "stream": name,
        "who": f"streamdp, window {window}",
        price.measure: float(price.amount),
        **covered,
        "keys": sum(at <= 30 for at in known.values()),
        "invented": len(set(known) - real),
    }


def covering(known: set[Key], truth: Counts, day: int) -> float:
    """The share of the flights of the seven days up to a day whose key is known."""
    week = truth[day - 7 : day]
    every = sum(sum(each.values()) for each in week)
    held = sum(n for each in week for key, n in each.items() if key in known)
    return held / every


def alone(name: str, truth: Counts, epsilon: Fraction) -> Iterator[Row]:
    """Thresholds of others: expected keys of the list of day 30, and of all lists together."""
    table = chances(epsilon, DELTA)
    scale = 1 / float(epsilon)
    border = 1 + scale * math.log(1 / (2 * float(DELTA)))

    def laplace(n: int) -> float:
        far = (n - border) / scale
        return 1 - 0.5 * math.exp(-far) if far > 0 else 0.5 * math.exp(far)

    def geometric(n: int) -> float:
        return float(table[min(n, len(table) - 1)] / ONE)

    for who, chance in (("OpenDP, day alone", laplace), ("PipelineDP, day alone", geometric)):
        missed: dict[Key, float] = {}
        for day in truth[:30]:
            for key, n in day.items():
                missed[key] = missed.get(key, 1.0) * (1 - chance(n))
        last = truth[29]
        yield {
            "stream": name,
            "who": who,
            "epsilon": float(epsilon),
            "covered_30": sum(n * chance(n) for n in last.values()) / sum(last.values()),
            "keys": sum(chance(n) for n in last.values()),
            "keys_of_all_lists": sum(1 - each for each in missed.values()),
        }


def counted(quick: bool) -> Iterator[Row]:
    """Mean error of daily counts: of a job of keys, and of statistics told them at .7."""
    truth, names = counts_by_day(COUNTS["destinations"])
    truth = truth[:60] if quick else truth
    price = Price(Fraction(1))
    kind = Keys(("dest",), price, DELTA, at_least=AT_LEAST, public=tuple((n,) for n in names))
    state, entropy = kind.init(), OperatingSystemEntropy()
    found = []
    for day, counts in enumerate(truth):
        plan = kind.plan(state, DAYS[day])
        held: dict[Key, int] = {(n,): int(c) for n, c in zip(names, counts, strict=True) if c}
        outcome = kind.draw(plan, KeyCounts(held), entropy)
        state = kind.learn(state, plan, outcome)
        found.append([[float(row[c] or 0) for row in outcome.rows] for c in ("count", "smoothed")])
    told = kind_of({"n": {"histogram": "x", "values": names}}, price.share(Fraction(7, 10)))
    of_told = a_year(told, lambda day: [truth[day]], len(truth))
    pairs: list[tuple[str, FloatArray]] = [
        ("streamdp keys, epsilon 1: counts", np.array(found)[:, 0]),
        ("streamdp keys, epsilon 1: smoothed", np.array(found)[:, 1]),
        ("statistics told the keys, epsilon .7: counts", of_told[0]),
        ("statistics told the keys, epsilon .7: smoothed", of_told[3]),
    ]
    for who, values in pairs:
        error = float(np.abs(values - truth).mean())
        yield {"stream": "counts of destinations", "who": who, "error": error}


def drawn(quick: bool) -> Iterator[Row]:
    """Seconds to draw candidates, and keys of too few units among them that were found."""
    count = 10**5 if quick else 10**6
    for units, price in (
        (3, PRICES[1]),
        (AT_LEAST - 1, PRICES[1]),
        (40, PRICES[1]),
        (12, PRICES[3]),
    ):
        kind = Keys(("k",), price, DELTA, at_least=AT_LEAST)
        names = [(f"key {number}",) for number in range(count)]
        Random(1).shuffle(names)  # the order of an engine's rows is that of no text
        held = KeyCounts(dict.fromkeys(names, units))
        plan = kind.plan(kind.init(), DAYS[0])
        selection_at(price, DELTA, 1, AT_LEAST).found(np.array([9]), OperatingSystemEntropy())
        began = time.process_time()
        outcome = kind.draw(plan, held, OperatingSystemEntropy())
        yield {
            "stream": f"{count} candidates of {units} units",
            "who": "streamdp",
            price.measure: float(price.amount),
            "seconds": time.process_time() - began,
            "keys": len(outcome.rows),
            "invented": len(outcome.rows) if units < AT_LEAST else 0,
        }


def asked(quick: bool) -> Iterator[Row]:
    """Seconds of the question: two million rows, 330,000 keys and as many units, one thread."""
    with tempfile.TemporaryDirectory() as folder:
        path, size = str(Path(folder) / "keys.parquet"), 2 * 10**5 if quick else 2 * 10**6
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT 'key ' || hash(i) % {size // 6} AS k, 'unit ' || hash(-i) %"
                f" {size // 6} AS u FROM range({size}) AS t(i)) TO '{path}' (FORMAT parquet)"
            )
        known = tuple((f"key {number}",) for number in range(size // 20))
        for about, bound, listed in (
            ("no units", None, ()),
            ("units of 10 keys", UnitBound("u", 10), ()),
            ("units of 1 key, all beyond it", UnitBound("u", 1), ()),
            (f"the same, {len(known)} known keys", UnitBound("u", 1), known),
        ):
            backend = DuckDBBackend(path, "parquet", limits=Limits(threads=1))
            query = KeyQuery(("k",), listed, AT_LEAST, 64, bound=bound)
            backend.check(query, Batch("s", "b"))
            began = time.process_time()
            answer = backend.answer(query, Batch("s", "b"))
            seconds = time.process_time() - began
            who = f"streamdp, {size} rows, {about}"
            yield {
                "stream": "the question",
                "who": who,
                "seconds": seconds,
                "keys": len(answer.units),
            }
            if not quick and java() and (bound is None or bound.rows > 1):
                yield asked_of_spark(path, f"{size} rows, {about}", query, answer)


def asked_of_spark(path: str, about: str, query: KeyQuery, told: KeyCounts) -> Row:
    """Processor time of Python and of Java, once Spark runs; `alike` is whether answers agree."""
    from pyspark.sql import SparkSession

    backend = SparkBackend("local[1]", Relation(query=f"SELECT * FROM parquet.`{path}`"))
    backend.check(query, Batch("s", "b"))
    (session,) = filter(None, [SparkSession.getActiveSession()])
    process = int(session._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    backend.answer(replace(query, least=10**6), Batch("s", "b"))  # compiles it
    began = time.process_time() + _spent(process)
    answer = backend.answer(query, Batch("s", "b"))
    return {
        "stream": "the question",
        "who": f"streamdp on Spark, {about}",
        "seconds": time.process_time() + _spent(process) - began,
        "keys": len(answer.units),
        "alike": answer.units == told.units,
    }


def _spent(process: int) -> float:
    """Seconds of processor time of another process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def remembered(quick: bool) -> Row:
    """Memory of a batch of a million keys, one in ten known: plan, draw and learn."""
    count = 10**5 if quick else 10**6
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        grown, state = pool.submit(_grown, count).result()
    who = f"streamdp, {count} keys drawn, {count // 10} known"
    return {"stream": "memory", "who": who, "peak_mb": grown, "state_mb": state}


def _grown(count: int) -> tuple[float, float]:
    """Most megabytes of this process, and those of the state as it is kept."""
    kind = Keys(
        ("k",),
        PRICES[1],
        DELTA,
        at_least=AT_LEAST,
        public=tuple((f"key {number}",) for number in range(count // 10)),
    )
    held = KeyCounts({(f"key {number}",): 40 for number in range(count)})
    plan = kind.plan(kind.init(), DAYS[0])
    outcome = kind.draw(plan, held, OperatingSystemEntropy())
    state = kind.learn(kind.init(), plan, outcome)
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(peak) / 1024, len(json.dumps(state)) / 10**6


if __name__ == "__main__":
    main("Keys that are found in a stream", rows)
