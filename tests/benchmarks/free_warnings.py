"""False alarms of the free warnings on a year of flights, and what they tell of planted faults.

python -m tests.benchmarks.free_warnings [--json] [--quick]

The rule of `streamdp.reports.releases.suspicion` was chosen on the jobs that are called
development. The others were released once, after it was chosen.
Planted: days without records, without one group, with values in seconds in place of minutes,
with zeros, with nulls, with a tenth of the records; each on its own day of the year.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from streamdp.config import load
from streamdp.daemon.runtime import runtime
from streamdp.reports.releases.suspicion import PAST, odd
from streamdp.store.reading.browse import newest_releases
from streamdp.types import Release
from tests.benchmarks.flights import PATH
from tests.benchmarks.report import Row, main
from tests.worlds import EventLog, HandClock, ReplayedEntropy

PLANTED: Mapping[int, tuple[str, str]] = {
    70: ("no records", "DELETE FROM flights WHERE date = DAY"),
    120: ("one group has none", "DELETE FROM flights WHERE date = DAY AND GROUP"),
    170: ("seconds, not minutes", "UPDATE flights SET COLUMN = 60 * COLUMN WHERE date = DAY"),
    220: ("all zero", "UPDATE flights SET COLUMN = 0 WHERE date = DAY"),
    270: ("all null", "UPDATE flights SET COLUMN = NULL WHERE date = DAY"),
    320: (
        "a tenth of the records",
        "DELETE FROM flights WHERE date = DAY AND hash(tail_number, hour) % 10 > 0",
    ),
}
"""Day of the year, what happens on it, and the statement that makes it so."""

AIRPORTS = "by: origin, groups: [EWR, JFK, LGA]"
CARRIERS = "by: carrier, groups: [AA, B6, DL, EV, MQ, UA, US]"
DESTINATIONS = "by: dest, groups: [ATL, BOS, LAX, MCO, ORD]"
DELAY = "resolution: 1, bounds: [-60, 600], guess: {location: 0, scale: 30}"
MINUTES = "resolution: 1, bounds: [0, 1000], guess: {location: 120, scale: 60}"
MEASURES = f"measures: {{flights: count, mean: {{mean: air_time, {MINUTES}}}}}"
QUARTILES = "quantiles: [0.25, 0.5, 0.75]"

Job = tuple[str, str, str, bool]

JOBS: Mapping[str, Job] = {
    "statistics by airport": (
        f"kind: statistics, {AIRPORTS}, epsilon: 0.5, {MEASURES}",
        "air_time", "origin = 'JFK'", True,
    ),
    "deciles of air time": (
        f"kind: quantiles, column: air_time, quantiles: deciles, {MINUTES}, expected_rows: 900, "
        "epsilon: 0.1", "air_time", "false", True,
    ),
    "quartiles of departure delay by airport": (
        f"kind: quantiles, column: departure_delay, {QUARTILES}, {DELAY}, {AIRPORTS}, "
        "expected_rows: 300, epsilon: 0.3", "departure_delay", "origin = 'JFK'", True,
    ),
    "statistics by carrier": (
        f"kind: statistics, {CARRIERS}, epsilon: 1, measures: {{flights: count, "
        f"mean: {{mean: arrival_delay, {DELAY}}}}}",
        "arrival_delay", "carrier = 'AA'", True,
    ),
    "deciles of arrival delay": (
        f"kind: quantiles, column: arrival_delay, quantiles: deciles, {DELAY}, "
        "expected_rows: 900, epsilon: 0.3", "arrival_delay", "false", True,
    ),
    "quartiles of arrival delay by carrier": (
        f"kind: quantiles, column: arrival_delay, {QUARTILES}, {DELAY}, {CARRIERS}, "
        "expected_rows: 120, epsilon: 1", "arrival_delay", "carrier = 'AA'", True,
    ),
    "quartiles of the hour": (
        f"kind: quantiles, column: hour, {QUARTILES}, resolution: 1, bounds: [0, 23], "
        "expected_rows: 900, epsilon: 0.1", "hour", "false", True,
    ),
    "workload": (
        "kind: workload, expected_rows: 900, epsilon: 0.3, dimensions: {origin: {values: "
        "[EWR, JFK, LGA]}, carrier: {values: [AA, B6, DL, EV, UA]}}, marginals: 2",
        "air_time", "origin = 'JFK'", True,
    ),
    "statistics by destination": (
        f"kind: statistics, {DESTINATIONS}, epsilon: 1, measures: {{flights: count, "
        f"mean: {{mean: departure_delay, {DELAY}}}, minutes: {{sum: air_time, {MINUTES}}}}}",
        "departure_delay", "dest = 'ORD'", False,
    ),
    "quartiles of air time by carrier": (
        f"kind: quantiles, column: air_time, {QUARTILES}, {MINUTES}, {CARRIERS}, "
        "expected_rows: 120, epsilon: 0.5", "air_time", "carrier = 'AA'", False,
    ),
    "deciles of departure delay": (
        f"kind: quantiles, column: departure_delay, quantiles: deciles, {DELAY}, "
        "expected_rows: 900, epsilon: 0.2", "departure_delay", "false", False,
    ),
    "hours by airport": (
        "kind: workload, expected_rows: 900, epsilon: 1, dimensions: {origin: {values: "
        "[EWR, JFK, LGA]}, hour: {cuts: [8, 12, 16, 20]}}, marginals: 2",
        "hour", "origin = 'JFK'", False,
    ),
}  # fmt: skip
"""What is released, the column that faults change, the group they leave out, for development."""

CONFIG = """
store: {path: store.db, anchor: anchor}
privacy: {unit: flight, caps: {batch: 2, lifetime: 1000}}
sources:
  flights:
    path: flights.duckdb
    table: flights
    batches: {column: date, every: 1d, start: 2013-01-01, end: END}
releases:
  job: {source: flights, JOB}
"""


def released(job: Job, days: int, planted: bool) -> Sequence[Release]:
    """Every release of a year, oldest first.

    Args:
        job: What is released.
        days: How many.
        planted: With the faults.
    """
    spec, column, group, _ = job
    with tempfile.TemporaryDirectory() as folder:
        with duckdb.connect(str(Path(folder) / "flights.duckdb")) as database:
            database.execute(
                "CREATE TABLE flights AS SELECT * REPLACE (air_time::INTEGER AS air_time, "
                "departure_delay::INTEGER AS departure_delay, "
                f"arrival_delay::INTEGER AS arrival_delay, hour::INTEGER AS hour) FROM '{PATH}'"
            )
            for day, (_, statement) in PLANTED.items() if planted else ():
                words = {"DAY": f"DATE '2013-01-01' + {day}", "COLUMN": column, "GROUP": group}
                changed = statement
                for word, meant in words.items():
                    changed = changed.replace(word, meant)
                database.execute(changed)
        path = Path(folder) / "config.yaml"
        end = duckdb.execute(f"SELECT (DATE '2013-01-01' + {days})::VARCHAR").fetchone()
        path.write_text(CONFIG.replace("JOB", spec).replace("END", str((end or [""])[0])))
        clock, entropy = HandClock(1_400_000_000), ReplayedEntropy("flights")
        with runtime(load(path), entropy, clock, EventLog()) as found:
            found.runner.round(found.jobs.values())
            return newest_releases(found.store.database, "job", days)[::-1]


def told(name: str, days: int, planted: bool) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The days on which something is odd, and what."""
    found = released(JOBS[name], days, planted)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(CONFIG.replace("JOB", JOBS[name][0]).replace("END", "2014-01-01"))
        bounds_of = load(path).releases["job"].bounds_of
    for day in range(len(found)):
        reasons = odd(found[max(day - PAST, 0) : day + 1][::-1], bounds_of)
        if reasons:
            yield day, reasons


def rows(quick: bool) -> Iterable[Row]:
    """Two rows a job: the year as it was, and the year with the faults."""
    days = 80 if quick else 365
    for name, (_, _, _, development) in JOBS.items():
        about: dict[str, Any] = {"job": name, "development": development, "days": days}
        clean = dict(told(name, days, planted=False))
        yield {
            **about,
            "year": "as it was",
            "warnings": len(clean),
            "a_month": round(len(clean) / days * 30.4, 2),
            "told": "; ".join(f"{day}: {', '.join(each)}" for day, each in clean.items())[:300],
        }
        faulty = dict(told(name, days, planted=True))
        caught = {day: faulty.get(day, ()) for day in PLANTED if day < days}
        yield {
            **about,
            "year": "with faults",
            "warnings": len(set(faulty) - set(clean) - set(PLANTED)),
            "a_month": None,
            "told": "; ".join(
                f"{PLANTED[day][0]}: {', '.join(each) or '-'}" for day, each in caught.items()
            ),
        }


if __name__ == "__main__":
    main("Free warnings on a year of flights", rows)
