"""The state of the daemon, of each gate and of each job, and the whole at a glance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.privacy.filters import Item, Measure
from streamdp.reports.budget import Purse, price_of_release, price_of_run, purse_of
from streamdp.reports.holds import Condition, Hold, holds, minute
from streamdp.reports.releases.suspicion import suspicions
from streamdp.sections.schedules import next_times
from streamdp.store.gates import open_run_of
from streamdp.store.ledger.ledger import held_by, passed_over
from streamdp.store.pulse import Pulse, read_pulse
from streamdp.store.reading.reports import (
    GateReport,
    Heart,
    Spent,
    gate_report,
    heart,
    job_report,
    standing,
)

Held = tuple[tuple[str, str], ...]
"""Caps that hold a job back, and when each frees."""

DaemonState = Literal["running", "hung", "dead", "stopped"]

DEAD_AFTER = 120
"""Seconds without a heartbeat after which a daemon that did not stop counts as dead."""


@dataclass(frozen=True, slots=True)
class GateStatus:
    """One gate: `armed`, `ready`, `rearm it`, `waits` or `exhausted`, and what holds it."""

    state: str
    held: Held
    report: GateReport


def signs_of_life(database: Database, store: Path) -> tuple[Heart, Pulse | None]:
    """The signs of life in the store, and those beside it, which a full volume does not stop."""
    known, beside = heart(database), read_pulse(store)
    if beside is None or (known.heartbeat_at or 0) > beside.at:
        return known, None if beside is None or beside.pid != known.pid else beside
    if beside.pid is None:
        return Heart(None, known.heartbeat_at, max(known.stopped_at or 0, beside.at)), None
    return Heart(beside.pid, beside.at, known.stopped_at), beside


def daemon_state(pulse: Heart, now: int, *, locked: bool | None = None) -> DaemonState:
    """Whether the daemon lives.

    Args:
        pulse: Its signs of life.
        now: POSIX time.
        locked: Whether a process holds the lock of the store; None where nobody looked, as a
            reader that may not write cannot.
    """
    silent = pulse.heartbeat_at is not None and now - pulse.heartbeat_at > DEAD_AFTER
    if locked is None:
        return "stopped" if pulse.pid is None else "dead" if silent else "running"
    if locked:
        return "hung" if silent else "running"
    return "stopped" if pulse.pid is None else "dead"


def is_alive(store: Path, now: int) -> bool:
    """Whether the daemon's heart beats; whatever its sources, its sinks and its store do.

    True before its first sign, as opening a store takes long, and after a stop on purpose.
    """
    pulse = read_pulse(store)
    return pulse is None or pulse.pid is None or now - pulse.at <= DEAD_AFTER


def why_not_ready(database: Database, store: Path, now: int) -> str:
    """Why the daemon cannot release now; nothing if it lives and can write its store."""
    life, pulse = signs_of_life(database, store)
    state = daemon_state(life, now)
    if state == "running":
        return "the store cannot be written" if pulse is not None and pulse.store else ""
    return state


def gate_status(
    configuration: Configuration, database: Database, name: str, now: int
) -> GateStatus:
    """Where one gate stands.

    It is armed by its first question, so one that is not armed has still to be paid.
    """
    gate, run = configuration.all_gates()[name], open_run_of(database, name)
    report = gate_report(database, name, now)
    price = price_of_run(configuration, database, name)
    if run is not None:
        price = Item(run.seq, run.epsilon_nano, run.rho_nano, run.delta_atto)
    held = held_by(database, configuration.source_of(gate), price)
    unarmed = "rearm it" if report.waits else _state(held, "ready")
    return GateStatus(_state(held, "armed") if report.armed else unarmed, held, report)


def holders(held: Held) -> str | None:
    """Caps that hold a job, in words; None if none does."""
    return "; ".join(dict.fromkeys(f"{cap} cap: {when}" for cap, when in held)) or None


def _state(held: Held, free: str) -> str:
    """State under caps: `exhausted` if one never frees, `waits` if all will, else `free`."""
    return "exhausted" if any(when == "never" for _, when in held) else "waits" if held else free


Form = Literal["text", "texts", "count", "time", "amount", "delta", "holds"]
"""What a value is: times are POSIX seconds, amounts nano units, delta is in units of 1e-18."""


def _shown(
    about: str, form: Form, *, gauge: str = "", counter: str = "", optional: bool = False
) -> Any:
    """A field that the API shows under its name, and metrics under the name given here."""
    return field(
        metadata={
            "about": about,
            "form": form,
            "gauge": gauge,
            "counter": counter,
            "optional": optional,
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job: what the ledger knows of it, what holds it, and what its budget has room for.

    The API, its schema and the metrics of a job follow from the fields that say what they are
    about. An optional one is left out of an answer where it is None.

    Args:
        condition: What holds the job first, whether the daemon works or not. While the store
            cannot be written each job is `failing` that nothing else holds.
        held: Caps that have no room for its next release, and when each frees.
        price: Of one release.
    """

    job: str = _shown("Name of a job.", "text")
    source: str = _shown("Source whose batches it releases.", "text")
    state: str = _shown(
        "`active`; or what holds it: `paused`, `waits`, `exhausted`, `rests`, `failing`, `late`"
        " (it has missed a turn of its schedule) or `empty` (no batch has arrived); or `daemon`"
        " and the daemon's state, where nothing else holds it.",
        "text",
    )
    holds: tuple[Hold, ...] = _shown("All that holds it, since when and until when.", "holds")
    releases: int = _shown("Releases of a job.", "count", counter="releases")
    last_batch: str | None = _shown("Batch of its newest release.", "text")
    last_released_at: int | None = _shown(
        "When a job last released.",
        "time",
        gauge="last_release_timestamp_seconds",
    )
    next_at: int | None = _shown(
        "When a job wakes next.", "time", gauge="next_due_timestamp_seconds"
    )
    epsilon: int | None = _shown(
        "Price of one release; none where it is paid in rho.", "amount", gauge="epsilon_of_release"
    )
    rho: int | None = _shown(
        "Price of one release that is paid in rho.",
        "amount",
        gauge="rho_of_release",
        optional=True,
    )
    delta: int | None = _shown(
        "Delta of one release; none where it has no such chance.",
        "delta",
        gauge="delta_of_release",
        optional=True,
    )
    measure: Measure = _shown("Measure in which it is charged: `epsilon` or `rho`.", "text")  # noqa: RUF009
    spent: int = _shown("Sum of its charges.", "amount")
    releases_left: int | None = _shown(
        "Releases the lifetime cap has room for.", "count", gauge="releases_left"
    )
    burnt: int = _shown("Charges without a release.", "count", counter="burnt")
    passed_over: int = _shown("Batches refused by the caps in force.", "count", gauge="passed_over")
    undelivered: int = _shown("Deliveries that sinks owe an answer.", "count")
    dead_letters: int = _shown("Deliveries that were given up.", "count")
    stands_to: str | None = _shown(
        "The last batch that its last release stands for, if a gate let it stand.", "text"
    )
    suspect: tuple[str, ...] = _shown("What is odd about its newest release.", "texts")
    condition: Condition
    held: Held
    price: Item


SHOWN = tuple(each for each in fields(JobView) if each.metadata)
"""Fields that say what they are about, in their order."""


def job_view(
    configuration: Configuration,
    database: Database,
    job: str,
    now: int,
    daemon: DaemonState,
    pulse: Pulse | None,
    *,
    purse: Purse | None = None,
    spent: Spent | None = None,
) -> JobView:
    """Where one job stands.

    Args:
        configuration: Of the job.
        database: The store.
        job: Its name.
        now: POSIX time.
        daemon: State of the daemon.
        pulse: Of the daemon that works.
        purse: Of its source, where it is known.
        spent: What it was charged, where that is known.
    """
    release, report = configuration.releases[job], job_report(database, job, spent)
    price = price_of_release(configuration, database, job)
    purse = purse or purse_of(database, release.source)
    held = held_by(database, release.source, price)
    found = holds(configuration, database, job, now, held, pulse)
    unwritable = pulse is not None and bool(pulse.store)
    condition = next((each.state for each in found), "failing" if unwritable else "active")
    newest = (
        list(standing(database, job, now).values())[-1:] if job in configuration.gated() else []
    )
    return JobView(
        job=job,
        source=release.source,
        state=condition if daemon == "running" or found else f"daemon {daemon}",
        holds=found,
        releases=report.releases,
        last_batch=report.last_batch,
        last_released_at=report.last_released_at,
        next_at=next(iter(next_times(release.schedule, now, 1)), None),
        epsilon=price.epsilon_nano,
        rho=price.rho_nano if price.epsilon_nano is None else None,
        delta=price.delta_atto or None,
        measure=report.measure,
        spent=report.spent_nano,
        releases_left=None if purse is None else purse.lasts(price),
        burnt=report.burnt,
        passed_over=len(passed_over(database, release.source, job)),
        undelivered=report.undelivered,
        dead_letters=report.dead_letters,
        stands_to=next((each.last for each in newest if each.of == report.last_batch), None),
        suspect=suspicions(configuration, database, job),
        condition=condition,
        held=held,
        price=price,
    )


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
