"""Rollups of the releases of a job: made when their periods are closed, and owed to sinks.

Post-processing of releases: reads no source, draws nothing, charges nothing. What is due follows
from the store alone, so a round after a crash makes what the one before did not.
"""

from __future__ import annotations

from streamdp.answers.closed import Closed, closed, identity
from streamdp.answers.periods import AROUND
from streamdp.engine.job import EngineContext, Job
from streamdp.errors import ConfigurationError
from streamdp.types import Row

TURN = 4
"""Rollups of one job before other tasks have their turn."""


def roll(job: Job, around: EngineContext) -> bool:
    """Make some of the rollups of a job that are due; whether more are left.

    Privacy: from measurements that were released. Which rollups there are follows from windows of
    releases.
    """
    store, terms = around.store, job.rollups
    if terms is None:
        return False
    newest = store.last_release(job.name)
    if newest is None or around.rolled.newest.get(job.name) == newest.id:
        return False
    # Answers need scipy, 30 MB that a daemon without rollups does not load.
    from streamdp.answers.rollups import in_form_of_release

    done, count = store.rolled_up(job.name), 0
    released = store.released_windows(job.name)
    for found in closed(terms, released):
        revision, made_of = done.get((found.step, found.period.name), (0, ""))
        key = job.name, found.step, found.period.name, found.made_of
        if made_of == found.made_of or key in around.rolled.without:
            continue
        if count == TURN:
            return True
        count += 1
        longest = max(end - start for start, end, _ in released)
        rows = _rows(job, found, longest, around)
        if not rows:
            around.rolled.without.add(key)
            continue
        made = identity(store.name, job.name, found)
        now = around.clock.now()
        rollup = in_form_of_release(newest, found, made, rows, revision + 1, now)
        if store.add_rollup(rollup, found.step, revision + 1, found.made_of, terms.sinks):
            about = {"job": job.name, "batch": found.period.name}
            around.log("rollup.made", **about, release=made)
    around.rolled.newest[job.name] = newest.id
    return False


def _rows(job: Job, found: Closed, longest: int, around: EngineContext) -> tuple[Row, ...]:
    """The rows of a period from its measurements; none where none were kept."""
    from streamdp.answers.job import Measured
    from streamdp.answers.rollups import rolled

    store, period = around.store, found.period
    newest = store.last_release(job.name)
    assert newest is not None, "a period is closed by a release"  # noqa: S101
    apart = AROUND * longest
    releases = store.measured_between(job.name, period.since - apart, period.until + apart)
    try:
        return rolled(Measured(job.name, releases), newest, period, bool(found.missing))
    except ConfigurationError:
        return ()
