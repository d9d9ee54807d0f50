"""What holds a job back, since when and until when, and what is wrong with its source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.errors import ClockError
from streamdp.files import nearest, resolve
from streamdp.objects import is_address
from streamdp.sources.windows import Windows
from streamdp.store.archive import has_arrived
from streamdp.store.clock_guard import require_not_ahead, require_not_behind
from streamdp.store.gates import open_run_of
from streamdp.store.ledger.ledger import burns_in_a_row, deaths_in_a_row, refused_since
from streamdp.store.problems import BatchProblem, paused_since, problems
from streamdp.store.pulse import Pulse
from streamdp.store.reading.reports import waits_since
from streamdp.text import iso
from streamdp.types.releases import rest_after, rest_after_deaths

Condition = Literal["active", "paused", "waits", "exhausted", "rests", "failing", "late", "empty"]

_MOMENT = re.compile(r"from (\S+Z) on")
"""Words of a cap that frees at a time."""


@dataclass(frozen=True, slots=True)
class Hold:
    """One thing that holds a job back.

    Args:
        state: Of the job, if this is the first that holds it.
        reason: In public words.
        since: POSIX time, where it is known.
        until: In words; nothing where it lasts until somebody does something.
    """

    state: Condition
    reason: str
    since: int | None = None
    until: str = ""

    @property
    def told(self) -> str:
        """The cause, since when and until when, in words."""
        since = "" if self.since is None else f", since {minute(self.since)}"
        until = f", until {self.until}" if self.until else ""
        return f"{self.state}: {self.reason}{since}{until}"


def minute(seconds: int) -> str:
    """A time as people read it: to the minute, so that it does not tell how long work took."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def holds(
    configuration: Configuration,
    database: Database,
    job: str,
    now: int,
    caps: tuple[tuple[str, str], ...],
    pulse: Pulse | None = None,
) -> tuple[Hold, ...]:
    """All holds of a job; those that a person can end come first.

    Args:
        configuration: Of the job.
        database: The store.
        job: Its name.
        now: POSIX time.
        caps: That have no room for its next release, and when each frees.
        pulse: Of the daemon that works.
    """
    return (
        *_paused(database, job),
        *_gate(configuration, database, job),
        *_caps(database, configuration.releases[job].source, job, caps),
        *_rest(database, configuration.releases[job].source, job, now),
        *_late(configuration, job, pulse),
        *_ahead(configuration, database, job, now),
        *_problems(configuration, database, job),
        *_unmet(database, configuration, job),
    )


def _paused(database: Database, job: str) -> list[Hold]:
    since = paused_since(database, job)
    return [] if since is None else [Hold("paused", f"`streamdp resume {job}` goes on", since)]


def _gate(configuration: Configuration, database: Database, job: str) -> list[Hold]:
    gate = configuration.gated().get(job)
    if gate is None:
        return []
    since = waits_since(database, gate)
    if since is None or open_run_of(database, gate) is not None:
        return []
    return [Hold("waits", f"its gate: `streamdp rearm {gate}`", since)]


def _caps(
    database: Database, source: str, job: str, caps: tuple[tuple[str, str], ...]
) -> list[Hold]:
    """Caps that refuse the job: it is exhausted if one never frees, and waits if all free later."""
    since = refused_since(database, source, job)
    return [
        _cap(cap, when, since) for cap, when in sorted(set(caps), key=lambda cap: cap[1] != "never")
    ]


def _cap(cap: str, when: str, since: int | None) -> Hold:
    """The hold of one cap: until a time, or its words say when it frees."""
    if when == "never":
        return Hold("exhausted", f"{cap} cap", since)
    moment = _MOMENT.fullmatch(when)
    if moment is None:
        return Hold("waits", f"{cap} cap, which frees {when}", since)
    return Hold("waits", f"{cap} cap", since, moment[1])


def _rest(database: Database, source: str, job: str, now: int) -> list[Hold]:
    burns, last = burns_in_a_row(database, source, job)
    deaths, same, died = deaths_in_a_row(database, source, job)
    dead = f"{max(deaths, same)} charges burnt in a row as the process died"
    found = []
    for seconds, at, why in (
        (rest_after(burns), last, f"{burns} charges burnt in a row by questions that failed"),
        (rest_after_deaths(deaths, same), died, dead),
    ):
        if abs(now - at) < seconds:
            found.append(Hold("rests", why, at, iso(at + seconds)))
    return found


def _late(configuration: Configuration, job: str, pulse: Pulse | None) -> list[Hold]:
    """Whether the job, or its gate, has missed a turn of its schedule."""
    since = None if pulse is None else pulse.late.get(job)
    if pulse is None or since is None:
        return []
    why = pulse.why_late(job, configuration.releases[job].source)
    return [Hold("late", f"it has missed a turn of its schedule: {why}", since)]


def _ahead(configuration: Configuration, database: Database, job: str, now: int) -> list[Hold]:
    """Whether the job or its gate was done with windows to come, by a clock that was ahead."""
    found = clock_errors(configuration, database, now, [job])
    return [Hold("failing", error.line) for error in found][:1]


def _problems(configuration: Configuration, database: Database, job: str) -> list[Hold]:
    """Problems of its source or its batches; a problem of one batch does not stop the others."""
    source = configuration.releases[job].source
    about = {job, f"source {source}", configuration.gated().get(job, job)}
    found = [problem for problem in problems(database) if problem.about in about]
    whole = [Hold("failing", each.reason, each.since) for each in found if not each.batch]
    single = [each for each in found if each.batch]
    if single:
        first = min(single, key=lambda each: each.since)
        more = f" (and {len(single) - 1} more)" if len(single) > 1 else ""
        whole.append(Hold("active", f"{first.batch}: {first.reason}{more}", first.since))
    return whole


def _unmet(database: Database, configuration: Configuration, job: str) -> list[Hold]:
    """Whether no batch of its source has ever arrived."""
    source = configuration.releases[job].source
    if has_arrived(database, source):
        return []
    return [Hold("empty", f"no batch of {source} has arrived yet")]


def clock_errors(
    configuration: Configuration, database: Database, now: int, names: Iterable[str]
) -> Iterator[ClockError]:
    """What is wrong as the clock has gone back, or was ahead once: of the store, then of jobs.

    Args:
        configuration: Of the jobs.
        database: The store.
        now: POSIX time.
        names: Of releases and gates.
    """
    try:
        require_not_behind(database, now)
    except ClockError as error:
        yield error
    gated = configuration.gated()
    for name in dict.fromkeys(each for job in names for each in (job, gated.get(job, job))):
        gates = configuration.all_gates()
        source = (
            configuration.source_of(gates[name])
            if name in gates
            else configuration.releases[name].source
        )
        try:
            require_not_ahead(database, name, source, now)
        except ClockError as error:
            yield error


def wrong_now(configuration: Configuration, database: Database | None) -> Iterator[BatchProblem]:
    """Problems of configured sources, jobs and gates, in public words.

    Args:
        configuration: Whose names count.
        database: The store; None where there is none yet.
    """
    yield from unfound(configuration)
    known = {*configuration.releases, *configuration.all_gates()}
    known |= {f"source {name}" for name in configuration.sources}
    for problem in problems(database) if database is not None else ():
        if problem.about in known:
            yield problem


def unfound(configuration: Configuration) -> Iterator[BatchProblem]:
    """Paths that find no file; a storage is not asked for objects."""
    for name, source in configuration.sources.items():
        files = source.path and source.table_name() is None and not source.is_lake()
        files = files and not is_address(source.path)
        if files and not resolve(source.path):
            waits = "" if isinstance(source.batches, Windows) else " yet"
            yield BatchProblem(
                f"source {name}",
                "",
                "no-file",
                f"{source.path} finds no file{waits}: {nearest(source.path)}",
                0,
            )
