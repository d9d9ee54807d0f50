"""State of the daemon and each gate: ledger facts, for commands and pages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.privacy.filters import Item
from streamdp.reports.guarantee.prices import price_of_run
from streamdp.store.gates import open_run_of
from streamdp.store.ledger.cap_usage import held_by
from streamdp.store.pulse import Pulse, read_pulse
from streamdp.store.reading.reports import (
    GateReport,
    Heart,
    gate_report,
    heart,
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
