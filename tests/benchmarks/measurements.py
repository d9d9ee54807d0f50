"""What measurements cost the store, and a learner that begins.

    python -m tests.benchmarks.measurements [--json] [--quick]

Real jobs over the demo's flights. `bytes` are of table and terms together, a release, as the store
has them on its pages; a decile release of one stage is to have about 92, of three stages 241. A
learner is replayed from all releases: `same state` is whether its state is then that of the store
to the last bit; `replay ms` and `release ms` are processor time a release, the second of
reading, drawing, learning and storing it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from streamdp.config import load
from streamdp.daemon.runtime import SystemClock, runtime
from streamdp.engine.job import Job
from streamdp.engine.release import replayed
from streamdp.privacy.draws import OperatingSystemEntropy
from tests.benchmarks.report import Row, main
from tests.crash.home import folder

HEAD = """
store: {path: store.db}
privacy: {unit: flight, caps: {batch: 9999, lifetime: 999999}}
sources:
  flights:
    path: demo:flights.parquet
    batches: {column: date, every: 1d, start: 2013-01-01, end: END}
releases:
  it: {source: flights, BODY}
"""
DECILES = (
    "kind: quantiles, column: air_time, quantiles: deciles, resolution: 1, bounds: [0, 1440],"
    " guess: {location: 120, scale: 60}, expected_rows: 900"
)
JOBS = {
    "deciles, most of one stage": f"{DECILES}, epsilon: 0.1",
    "deciles, most of three stages": f"{DECILES}, epsilon: 1",
    "deciles of three groups": (
        f"{DECILES}, epsilon: 0.5, by: origin, groups: [EWR, JFK, LGA]".replace("900", "300")
    ),
    "statistics": (
        "kind: statistics, epsilon: 1, measures: {n: count, air: {mean: air_time, resolution: 1,"
        " bounds: [0, 1440]}, delay: {histogram: arrival_delay, cuts: [0, 15, 60]}}"
    ),
    "workload": (
        "kind: workload, epsilon: 1, expected_rows: 900, marginals: 2, dimensions: {origin:"
        " {values: [EWR, JFK, LGA]}, air_time: {cuts: [60, 120, 240]}}"
    ),
    "selection": (
        "kind: selection, epsilon: 0.1, among: {sql: 'departure_delay >= {t}', t: {from: -20, to:"
        " 80}}, score: {errors: arrival_delay > 15}"
    ),
    "experts": (
        "kind: experts, epsilon: 0.1, expected_rows: 900, experts: {rules: {sql: 'departure_delay"
        " >= {t}', t: {from: -20, to: 75, step: 5}}, label: arrival_delay > 15}"
    ),
}
"""Of each kind, and of the counts of one stage and of three."""

FIRST, LAST = "2013-02-01", "2014-01-01"


def rows(quick: bool) -> Iterator[Row]:
    """A row a job, of a year of days, or of a month."""
    for name, body in JOBS.items():
        with folder() as place:
            yield {"job": name, **measured(place, body, FIRST if quick else LAST)}


def measured(place: Path, body: str, end: str) -> Row:
    """Release a job from 2013 on, and replay its learner."""
    (place / "config.yaml").write_text(HEAD.replace("BODY", body).replace("END", end))
    configuration = load(place / "config.yaml")
    clock, begun = SystemClock(), time.process_time()
    quiet = OperatingSystemEntropy(), clock, lambda *_, **__: None
    with runtime(configuration, *quiet) as running:
        released = running.runner.round(list(running.jobs.values())).released
        took, store = time.process_time() - begun, running.runner.around.store
        learned, job = store.learned("it"), running.jobs["it"]
        assert isinstance(job, Job)
        begun = time.process_time()
        again = replayed(job, store, clock.now())
        replay = time.process_time() - begun
        stages = sum(len(each.measurements) for each in store.measured("it"))
        assert learned is not None
    path, _ = configuration.store.paths()
    with closing(sqlite3.connect(path)) as raw:
        (payload,) = raw.execute(
            "SELECT sum(length(cells) + length(numbers) + coalesce(length(given), 0))"
            " FROM measurement"
        ).fetchone()
        (pages,) = raw.execute(
            "SELECT sum(pgsize) FROM dbstat WHERE name IN ('measurement', 'measurement_terms',"
            " 'sqlite_autoindex_measurement_terms_1')"
        ).fetchone()
    return {
        "releases": released,
        "measurements a release": round(stages / released, 2),
        "bytes of numbers": round(payload / released),
        "bytes": round(pages / released),
        "same state": again.state == learned.state,
        "replayed": again.releases,
        "replay ms": round(1e3 * replay / released, 1),
        "release ms": round(1e3 * took / released, 1),
    }


if __name__ == "__main__":
    main("Measurements: their size, and what they teach", rows)
