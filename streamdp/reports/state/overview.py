"""Overview for an operator: every job, what holds it, and what needs attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.reports.guarantee.budget import Purse, purse_of
from streamdp.reports.state.holds import Hold, minute
from streamdp.reports.state.jobs import (
    DaemonState,
    GateStatus,
    JobView,
    daemon_state,
    gate_status,
    job_view,
    signs_of_life,
)
from streamdp.store.pulse import Pulse
from streamdp.store.reading.reports import Heart, Spent

SHORT_RUNWAY = 30
"""Releases left under the lifetime cap from which on it is worth a warning."""


@dataclass(frozen=True, slots=True)
class StateAlert:
    """Something that needs an operator, in a job or in the whole."""

    level: Literal["error", "warning"]
    of: str
    text: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The whole at a glance."""

    daemon: DaemonState
    pulse: Heart
    jobs: tuple[JobView, ...]
    gates: tuple[GateStatus, ...]
    purses: tuple[Purse, ...]
    beat: Pulse | None
    alerts: tuple[StateAlert, ...]


def overview(
    configuration: Configuration,
    database: Database,
    now: int,
    spent: Callable[[str], Spent | None] = lambda job: None,
    *,
    locked: bool | None = None,
) -> Overview:
    """The whole at a glance.

    Args:
        configuration: Of the jobs.
        database: The store.
        now: POSIX time.
        spent: What a job was charged, where that is known.
        locked: Whether a process holds the lock of the store; None where nobody looked.
    """
    pulse, beat = signs_of_life(database, configuration.store.path)
    state = daemon_state(pulse, now, locked=locked)
    purses = {name: purse_of(database, name) for name in configuration.sources}
    jobs = tuple(
        job_view(
            configuration,
            database,
            name,
            now,
            state,
            beat,
            purse=purses[each.source],
            spent=spent(name),
        )
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
            text = f"{each.state}: a question for {each.job}, since {minute(each.since)}"
            yield StateAlert("error", f"source {each.source}", text)


def _of_job(job: JobView) -> list[StateAlert]:
    name, left = job.job, job.releases_left
    found = [StateAlert(_level(hold), name, hold.told) for hold in job.holds]
    if not found and left is not None and left < SHORT_RUNWAY:
        found.append(StateAlert("warning", name, f"has budget for {left} more"))
    if job.dead_letters:
        text = f"has {job.dead_letters} deliveries that sinks did not take"
        found.append(StateAlert("error", name, text))
    if job.suspect:
        found.append(
            StateAlert("warning", name, f"has a suspect release: {'; '.join(job.suspect)}")
        )
    if job.passed_over:
        found.append(StateAlert("warning", name, f"had {job.passed_over} batches refused by a cap"))
    return found


def _level(hold: Hold) -> Literal["error", "warning"]:
    return "error" if hold.state in ("exhausted", "failing", "late") else "warning"


def _of_gates(gates: tuple[GateStatus, ...]) -> list[StateAlert]:
    waiting = [gate.report.gate for gate in gates if gate.state == "rearm it"]
    return [StateAlert("warning", name, "waits for `streamdp rearm`") for name in waiting]
