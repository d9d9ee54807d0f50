"""Overview for an operator: every job, what holds it, and what needs attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.privacy.filters import Item, Measure
from streamdp.reports.guarantee.prices import price_of_release
from streamdp.reports.state.holds import Hold
from streamdp.reports.state.status import (
    DaemonState,
    GateStatus,
    JobStatus,
    daemon_state,
    gate_status,
    job_status,
    signs_of_life,
)
from streamdp.store.ledger.chain import spent_of
from streamdp.store.ledger.ledger import caps_of, declaration_of
from streamdp.store.pulse import Pulse
from streamdp.store.reading.browse import newest_releases
from streamdp.store.reading.reports import Heart, Spent
from streamdp.types import Release

RECENT = 60
"""Releases in the little picture of a job."""

SHORT_RUNWAY = 30
"""Releases left under the lifetime cap from which on it is worth a warning."""


@dataclass(frozen=True, slots=True)
class StateAlert:
    """Something that needs an operator, in a job or in the whole."""

    level: Literal["error", "warning"]
    of: str
    text: str


@dataclass(frozen=True, slots=True)
class JobLook:
    """One job at a glance.

    Args:
        status: Where it stands.
        source: Whose batches it releases.
        price: Of one release.
        runway: How many more releases the lifetime cap of its source has room for.
        recent: Its last releases, oldest first.
    """

    status: JobStatus
    source: str
    price: Item
    runway: int | None
    recent: tuple[Release, ...]


@dataclass(frozen=True, slots=True)
class Purse:
    """Spent part of a source's caps over the lifetime, in units of their measures."""

    source: str
    measure: Measure
    spent_nano: int
    cap_nano: int
    spent_delta_atto: int = 0
    cap_delta_atto: int = 0

    def lasts(self, price: Item) -> int | None:
        """Return for how many more charges there is room; None where they cost nothing."""
        left = (
            (self.cap_nano - self.spent_nano, price.amount(self.measure)),
            (self.cap_delta_atto - self.spent_delta_atto, price.delta_atto),
        )
        return min((max(room, 0) // each for room, each in left if each), default=None)


@dataclass(frozen=True, slots=True)
class Overview:
    """The whole at a glance."""

    daemon: DaemonState
    pulse: Heart
    jobs: tuple[JobLook, ...]
    gates: tuple[GateStatus, ...]
    purses: tuple[Purse, ...]
    beat: Pulse | None
    alerts: tuple[StateAlert, ...]


def overview(
    configuration: Configuration,
    database: Database,
    now: int,
    spent: Callable[[str], Spent | None] = lambda job: None,
) -> Overview:
    """The whole at a glance; `spent` says what a job was charged, where that is known."""
    pulse, beat = signs_of_life(database, configuration.store.path)
    state = daemon_state(pulse, now)
    purses = {name: purse_of(database, name) for name in configuration.sources}
    jobs = tuple(
        job_look(configuration, database, name, now, purses[each.source], spent(name), beat)
        for name, each in configuration.releases.items()
    )
    names = configuration.all_gates()
    gates = tuple(gate_status(configuration, database, name, now) for name in names)
    return Overview(
        state,
        pulse,
        jobs,
        gates,
        tuple(purse for purse in purses.values() if purse is not None),
        beat,
        (
            *of_daemon(state, beat),
            *(alert for job in jobs for alert in _of_job(job)),
            *_of_gates(gates),
        ),
    )


def job_look(
    configuration: Configuration,
    database: Database,
    job: str,
    now: int,
    purse: Purse | None = None,
    spent: Spent | None = None,
    pulse: Pulse | None = None,
) -> JobLook:
    """One job at a glance."""
    release = configuration.releases[job]
    price = price_of_release(configuration, database, job)
    purse = purse or purse_of(database, release.source)
    return JobLook(
        status=job_status(configuration, database, job, now, spent, pulse),
        source=release.source,
        price=price,
        runway=None if purse is None else purse.lasts(price),
        recent=newest_releases(database, job, RECENT)[::-1],
    )


def purse_of(database: Database, source: str) -> Purse | None:
    """Spent part of a source's caps over the lifetime; None where the ledger does not know it."""
    if declaration_of(database, source) is None:
        return None
    caps = caps_of(database, source)
    spent = spent_of(database, source, caps.measure)
    most = min(limit.nano for limit in caps.deltas if limit.lifetime)
    delta = spent_of(database, source, "delta")
    return Purse(source, caps.measure, spent, caps.lifetime_nano, delta, most)


def of_daemon(state: DaemonState, pulse: Pulse | None) -> list[StateAlert]:
    """What needs an operator in the daemon as a whole."""
    if state != "dead":
        return [] if pulse is None else list(_of_pulse(pulse))
    text = "gives no sign of life, and has not stopped on purpose: nothing is released"
    return [StateAlert("error", "daemon", text)]


def _of_pulse(pulse: Pulse) -> Iterator[StateAlert]:
    """What a daemon that works meets in its store, its copies and its configuration."""
    if pulse.store:
        yield StateAlert("error", "store", pulse.store)
    if pulse.backup:
        yield StateAlert("warning", "backup", pulse.backup)
    if pulse.reload:
        yield StateAlert("warning", "configuration", f"the last reload was refused: {pulse.reload}")
    for each in pulse.asking:
        if each.state == "hung":
            text = f"{each.state}: a question for {each.job}, since {_minute(each.since)}"
            yield StateAlert("error", f"source {each.source}", text)


def _of_job(job: JobLook) -> list[StateAlert]:
    status, name = job.status, job.status.report.job
    found = [StateAlert(_level(hold), name, told(hold)) for hold in status.holds]
    if not found and job.runway is not None and job.runway < SHORT_RUNWAY:
        found.append(StateAlert("warning", name, f"has budget for {job.runway} more"))
    if status.report.dead_letters:
        count = status.report.dead_letters
        found.append(StateAlert("error", name, f"has {count} deliveries that sinks did not take"))
    if status.suspect:
        found.append(
            StateAlert("warning", name, f"has a suspect release: {'; '.join(status.suspect)}")
        )
    if status.passed_over:
        found.append(
            StateAlert("warning", name, f"had {status.passed_over} batches refused by a cap")
        )
    return found


def told(hold: Hold) -> str:
    """Cause that holds a job, since when and until when, in words."""
    since = "" if hold.since is None else f", since {_minute(hold.since)}"
    return f"{hold.state}: {hold.reason}{since}" + (f", until {hold.until}" if hold.until else "")


def _level(hold: Hold) -> Literal["error", "warning"]:
    return "error" if hold.state in ("exhausted", "failing", "late") else "warning"


def _minute(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _of_gates(gates: tuple[GateStatus, ...]) -> list[StateAlert]:
    waiting = [gate.report.gate for gate in gates if gate.state == "rearm it"]
    return [StateAlert("warning", name, "waits for `streamdp rearm`") for name in waiting]
