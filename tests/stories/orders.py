"""Orders of a shop, released day by day, and what each published number was against the truth.

Sixty days of orders in four countries: one day is empty, one is thrice as busy. A growing DuckDB
table is released in days of a zone, over a change of its clocks, as counts and means by country
(over narrow bounds with a guess, and over wide bounds without) and as quantiles.

Privacy: none; the orders are made up and the truth is read beside the releases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

CONFIG = """
store: {path: store.db, anchor: anchor}
privacy:
  unit: order
  caps: {batch: 20, lifetime: 5000}
sources:
  utc:
    path: orders.duckdb
    table: orders
    batches: {column: ordered_at, every: 1d, start: 2024-03-04, end: END, timezone: ZONE}
releases:
  narrow:
    kind: statistics
    source: utc
    by: country
    groups: [DE, FR, AT, US]
    epsilon: 1
    measures:
      orders: count
      mean: {mean: amount, resolution: 1, bounds: [0, 400], guess: {location: 50, scale: 30},
             weight: 3}
  wide:
    kind: statistics
    source: utc
    by: country
    groups: [DE, FR, AT, US]
    epsilon: 1
    measures:
      orders: count
      mean: {mean: amount, resolution: 1, bounds: [-100, 2000], weight: 3}
  amounts:
    {kind: quantiles, source: utc, column: amount, quantiles: deciles, resolution: 1,
     bounds: [0, 400], guess: {location: 50, scale: 30}, expected_rows: 700, epsilon: 1}
"""


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


def orders(days: int, seed: int, zone: ZoneInfo) -> dict[str, Any]:
    """All orders, at hours of the day in a zone."""
    chance = np.random.default_rng(seed)
    at: list[datetime] = []
    country: list[str] = []
    amount: list[float] = []
    for day in range(days):
        times = {EMPTY: 0, BUSY: 3}.get(day, 1)
        for name, (usual, median) in COUNTRIES.items():
            count = int(chance.poisson(usual * times))
            seconds = chance.integers(0, 86_400, count).tolist()
            start = (FIRST + timedelta(days=day)).replace(tzinfo=zone).astimezone(UTC)
            at += [start + timedelta(seconds=0.95 * each) for each in seconds]
            country += [name] * count
            amount += np.rint(chance.lognormal(np.log(median), 0.6, count)).clip(0, 400).tolist()
    return {"ordered_at": at, "country": country, "amount": amount}


def walk(folder: Path, days: int, seed: int, zone: str) -> Iterator[Said]:
    """Every published interval of all days."""
    made = orders(days, seed, ZoneInfo(zone))
    with duckdb.connect(str(folder / "orders.duckdb")) as database:
        database.execute("CREATE TABLE orders (ordered_at TIMESTAMP, country TEXT, amount DOUBLE)")
        names = list(made)
        lists = ", ".join(f"unnest(?) AS {name}" for name in names)
        database.execute(f"INSERT INTO orders SELECT {lists}", [made[name] for name in names])
    end = (FIRST + timedelta(days=days)).date().isoformat()
    path = folder / "config.yaml"
    path.write_text(CONFIG.replace("END", end).replace("ZONE", zone))
    configuration = load(path)
    clock = HandClock(int((FIRST + timedelta(days=days + 2)).replace(tzinfo=UTC).timestamp()))
    with runtime(configuration, ReplayedEntropy(str(seed)), clock, EventLog()) as found:
        found.runner.round(found.jobs.values())
        for job in configuration.releases:
            released = newest_releases(found.store.database, job, days + 2)
            yield from _said(job, released, made, ZoneInfo(zone))


def _said(
    job: str, releases: Sequence[Any], made: dict[str, Any], zone: ZoneInfo
) -> Iterator[Said]:
    days = np.array([each.astimezone(zone).date().toordinal() for each in made["ordered_at"]])
    country, amount = np.array(made["country"]), np.array(made["amount"])
    for release in releases:
        day = datetime.fromtimestamp(release.window_start, zone).date().toordinal()
        for row in release.rows:
            here = days == day
            if "country" in row:
                here = here & (country == row["country"])
            number = day - FIRST.toordinal()
            about = number, row, amount[here]
            if "quantile" in row:
                yield _one(f"{job} {row['quantile']}", "value", *about, _quantile(about[2], row))
                if row["records"] is not None and row["quantile"] == 0.5:
                    yield _one(f"{job} records", "records", *about, float(here.sum()))
            else:
                mean = float(about[2].mean()) if here.any() else None
                truth = float(here.sum()) if row["measure"] == "orders" else mean
                group = f" {row['country']}" if "country" in row else ""
                yield _one(f"{job} {row['measure']}{group}", "value", *about, truth)


def _quantile(values: FloatArray, row: Any) -> float | None:
    if not len(values):
        return None
    return float(np.sort(values)[min(int(np.ceil(row["quantile"] * len(values))), len(values)) - 1])


def _one(
    what: str, name: str, day: int, row: Any, records: FloatArray, truth: float | None
) -> Said:
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
