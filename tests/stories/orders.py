"""Orders of a shop, released day by day, and what each published number was against the truth.

Sixty days of orders in four countries by customers who have one to six of them a day: one day is
empty, one is thrice as busy. Two growing DuckDB tables, in days of two zones, over a change of
the clocks of one. Released are counts and means by country (over narrow bounds with a guess, and
over wide bounds without), deciles, a workload of hours and countries, and, from a store of its
own, the same counts and means of at most two orders a customer.

Privacy: none; the orders are made up and the truth is read beside the releases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np

from streamdp.config import load
from streamdp.daemon.runtime import runtime
from streamdp.store.reading.browse import newest_releases
from streamdp.types import FloatArray
from tests.worlds import EventLog, HandClock, ReplayedEntropy

COUNTRIES = {"DE": (350, 40.0), "FR": (150, 45.0), "AT": (40, 35.0), "US": (200, 60.0)}
"""Orders a day, and the median amount."""

EMPTY, BUSY = 40, 47
"""Days after the first."""

FIRST = datetime(2024, 3, 4)  # noqa: DTZ001
"""Midnight of the first day, wherever it is."""
NARROW, WIDE = (0, 400), (-100, 2000)

ORDERS = [0.6, 0.2, 0.1, 0.05, 0.03, 0.02]
"""Chances that a customer has one to six orders a day."""

MOST = 2
"""Orders of a customer that count where it is the customer who is protected."""

BERLIN, UTC_ZONE = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")

COMMON = """
store: {path: STORE.db, anchor: STORE-anchor}
privacy:
  unit: UNIT
  caps: {batch: 20, lifetime: 5000}
sources:
  orders:
    path: ZONE.duckdb
    table: orders
    batches: {column: ordered_at, every: 1d, start: 2024-03-04, end: END, timezone: NAME}
releases:
"""

STATISTICS = """
  JOB:
    kind: statistics
    source: orders
    by: country
    groups: [DE, FR, AT, US]
    epsilon: 1
    measures:
      orders: count
      mean: {mean: amount, resolution: 1, weight: 3, BOUNDS}
"""
AROUND = "bounds: [0, 400], guess: {location: 50, scale: 30}"

AMOUNTS = """
  amounts:
    {kind: quantiles, source: orders, column: amount, quantiles: deciles, resolution: 1,
     bounds: [0, 400], guess: {location: 50, scale: 30}, expected_rows: 700, epsilon: 1}
"""
HOURS = """
  hours:
    kind: workload
    source: orders
    dimensions: {country: {values: [DE, FR, AT, US]}, hour: {column: ordered_at, part: hour}}
    marginals: 2
    expected_rows: 700
    epsilon: 1
"""

ORDER, CUSTOMER = "order", "{name: customer, column: customer, rows: 2}"

PLACES = (
    ("berlin", BERLIN, ORDER, STATISTICS.replace("JOB", "narrow").replace("BOUNDS", AROUND)
     + STATISTICS.replace("JOB", "wide").replace("BOUNDS", "bounds: [-100, 2000]")
     + AMOUNTS),
    ("hours", BERLIN, ORDER, HOURS),
    ("hours-in-utc", UTC_ZONE, ORDER, HOURS.replace("hours:", "hours-in-utc:")),
    ("customers", UTC_ZONE, CUSTOMER,
     STATISTICS.replace("JOB", "capped").replace("BOUNDS", AROUND)),
)  # fmt: skip
"""Store and table, zone of the days, unit, and jobs, by place."""


@dataclass(frozen=True, slots=True)
class Said:
    """One published interval, and what it is meant to hold.

    Args:
        what: Job, measure and group.
        day: Number of the batch.
        value: Published.
        lower: End.
        upper: End.
        truth: Of the records that count; None where there is none.
        flag: Of the row.
    """

    what: str
    day: int
    value: float
    lower: float
    upper: float
    truth: float | None
    flag: str | None


def orders(days: int, seed: int) -> list[dict[str, Any]]:
    """The orders of each day; times are seconds of the day, hours in the zone of the table."""
    chance = np.random.default_rng(seed)
    made = []
    for day in range(days):
        times = {EMPTY: 0, BUSY: 3}.get(day, 1)
        columns: dict[str, list[Any]] = {"second": [], "country": [], "amount": [], "customer": []}
        for name, (usual, median) in COUNTRIES.items():
            # A busy day has more orders of each customer too, so a bound cuts more of them off.
            count = int(chance.poisson(usual * times))
            each = chance.choice(len(ORDERS), count, p=ORDERS) + 1 + (times > 1)
            whose = np.repeat(np.arange(count), each)[:count]
            columns["second"] += (0.95 * chance.integers(0, 86_400, count)).tolist()
            columns["country"] += [name] * count
            amounts = np.rint(chance.lognormal(np.log(median), 0.6, count)).clip(0, 400)
            columns["amount"] += amounts.tolist()
            columns["customer"] += [f"{name} {day} {number}" for number in whose]
        made.append({name: np.array(column) for name, column in columns.items()})
    return made


def walk(folder: Path, days: int, seed: int, without: Sequence[str] = ()) -> Iterator[Said]:
    """Every published interval of all days.

    Args:
        folder: Tables, stores and configurations are made in it.
        days: How many.
        seed: Of the orders and of the noise.
        without: Places that are left out.
    """
    made = orders(days, seed)
    for place, zone, unit, jobs in PLACES:
        if place in without:
            continue
        end = (FIRST + timedelta(days=days)).date().isoformat()
        words = {"STORE": place, "UNIT": unit, "ZONE": place, "NAME": zone.key, "END": end}
        text = COMMON + jobs
        for word, meant in words.items():
            text = text.replace(word, meant)
        path = folder / f"{place}.yaml"
        path.write_text(text)
        clock = HandClock(int(FIRST.replace(tzinfo=UTC).timestamp()))
        with ExitStack() as stack:
            _insert(folder / f"{place}.duckdb", None, 0, zone)
            entropy = ReplayedEntropy(f"{seed} {place}")
            found = stack.enter_context(runtime(load(path), entropy, clock, EventLog()))
            for day, here in enumerate(made):
                _insert(folder / f"{place}.duckdb", here, day, zone)
                clock.seconds = int(
                    (FIRST + timedelta(days=day + 1, hours=1)).replace(tzinfo=UTC).timestamp()
                )
                found.runner.round(found.jobs.values())
            for job in found.jobs:
                released = newest_releases(found.store.database, job, days + 2)
                yield from _said(job, released, made, zone)


def _insert(path: Path, here: dict[str, Any] | None, day: int, zone: ZoneInfo) -> None:
    with duckdb.connect(str(path)) as database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS orders"
            " (ordered_at TIMESTAMP, country TEXT, amount DOUBLE, customer TEXT)"
        )
        if here is None or not len(here["second"]):
            return
        start = (FIRST + timedelta(days=day)).replace(tzinfo=zone)
        at = [_naive(start, float(each)) for each in here["second"]]
        columns = [at, *(here[each].tolist() for each in ("country", "amount", "customer"))]
        database.execute(
            "INSERT INTO orders SELECT unnest(?), unnest(?), unnest(?), unnest(?)", columns
        )


def _naive(start: datetime, second: float) -> datetime:
    """The time in UTC of some seconds after midnight of a zone."""
    return (start.astimezone(UTC) + timedelta(seconds=second)).replace(tzinfo=None)


def _said(
    job: str, releases: Sequence[Any], made: Sequence[dict[str, Any]], zone: ZoneInfo
) -> Iterator[Said]:
    for release in releases:
        start = datetime.fromtimestamp(release.window_start, zone)
        day = start.date().toordinal() - FIRST.toordinal()
        here = made[day]
        for row in release.rows:
            if "measure" in row:
                yield _of_measure(job, day, row, here)
            elif "quantile" in row:
                what = f"{job} {row['quantile']}"
                yield _one(what, "value", day, row, _quantile(here["amount"], row))
                if row["records"] is not None and row["quantile"] == 0.5:
                    records = float(len(here["amount"]))
                    yield _one(f"{job} records", "records", day, row, records)
            else:
                yield _of_cell(job, day, row, here, start)


def _of_measure(job: str, day: int, row: Any, here: dict[str, Any]) -> Said:
    """Counts are of at most two orders a customer where that is the job's unit; means are too."""
    found = np.ones(len(here["country"]), dtype=bool)
    if "country" in row:
        found = here["country"] == row["country"]
    group = f" {row['country']}" if "country" in row else ""
    what = f"{job} {row['measure']}{group}"
    if row["measure"] != "orders":
        mean = float(here["amount"][found].mean()) if found.any() else None
        return _one(what, "value", day, row, mean)
    counts = np.unique(here["customer"][found], return_counts=True)[1]
    kept = np.minimum(counts, MOST) if job == "capped" else counts
    return _one(what, "value", day, row, float(kept.sum()))


def _of_cell(job: str, day: int, row: Any, here: dict[str, Any], start: datetime) -> Said:
    """A count of a workload; hours are those of the clocks in the zone of the day."""
    found = np.ones(len(here["country"]), dtype=bool)
    if row.get("country") is not None:
        known = np.isin(here["country"], list(COUNTRIES))
        found &= here["country"] == row["country"] if row["country"] in COUNTRIES else ~known
    if row.get("hour") is not None:
        zone = start.tzinfo
        at = [_naive(start, float(each)).replace(tzinfo=UTC) for each in here["second"]]
        hours = np.array([str(each.astimezone(zone).hour) for each in at], dtype=object)
        found &= hours == row["hour"]
    truth = float(found.sum())
    size = "5 or more" if truth >= 5 else "fewer than 5"
    return _one(f"{job} {row['answer']}, {size}", "value", day, row, truth)


def _quantile(values: FloatArray, row: Any) -> float | None:
    if not len(values):
        return None
    return float(np.sort(values)[min(int(np.ceil(row["quantile"] * len(values))), len(values)) - 1])


def _one(what: str, name: str, day: int, row: Any, truth: float | None) -> Said:
    ends = ("lower", "upper") if name == "value" else ("records_lower", "records_upper")
    lower, upper = (float(row[end]) for end in ends)
    return Said(what, day, float(row[name]), lower, upper, truth, row.get("flag"))


def held(said: Sequence[Said]) -> float:
    """Share of the intervals that hold what they are meant to."""
    judged = [each for each in said if each.truth is not None]
    return sum(each.lower <= (each.truth or 0.0) <= each.upper for each in judged) / len(judged)


def by_what(said: Sequence[Said]) -> dict[str, list[Said]]:
    """Intervals by what they are of."""
    found: dict[str, list[Said]] = {}
    for each in said:
        found.setdefault(each.what, []).append(each)
    return found
