"""`streamdp status`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import local, print_rows
from streamdp.privacy.amounts import epsilon_text, exact, nano_up
from streamdp.privacy.filters import Item
from streamdp.types import Json

if TYPE_CHECKING:
    from sqlite_utils import Database

    from streamdp.config import Configuration
    from streamdp.store.gate_reports import GateReport, Standing
    from streamdp.store.reports import JobReport

Held = Sequence[tuple[str, str]]
"""Caps that hold a job back, and when each frees."""

DEAD_AFTER = 120
"""Seconds without a heartbeat after which a daemon that did not stop counts as dead."""


@click.command()
@config_option
@json_option
def status(config_path: Path, as_json: bool) -> None:
    """Show whether the daemon lives and where each job stands; works without it.

    `held by` names the caps that have no room for a job's next release, and when they have: the
    job waits, or is exhausted if one never frees. `passed over` counts batches that a cap refused.

    Exits with 1 if the daemon died: it has a lock or a heartbeat but gives no sign of life.
    """
    import time

    from streamdp.daemon.lock import is_locked
    from streamdp.store.database import connect_to_read
    from streamdp.store.gate_reports import gate_report, standing
    from streamdp.store.reports import heart, job_report

    configuration = load_configuration(config_path)
    database = connect_to_read(configuration.store.path)
    pulse, now = heart(database), int(time.time())
    if is_locked(configuration.store.path):
        silent = pulse.heartbeat_at is not None and now - pulse.heartbeat_at > DEAD_AFTER
        state = "hung" if silent else "running"
    else:
        state = "dead" if pulse.pid is not None else "stopped"
    rows: list[dict[str, Json]] = []
    for job in configuration.releases:
        report = job_report(database, job)
        rows.append(_row(configuration, database, report))
        if configuration.gated():
            found = list(standing(database, job, now).values())
            rows[-1]["stands_to"] = _stands_to(found[-1:], report.last_batch)
    gates = [
        _gate_row(configuration, database, gate_report(database, name, now))
        for name in configuration.all_gates()
    ]
    beat = local(pulse.heartbeat_at)
    if as_json:
        print_rows([{"daemon": state, "pid": pulse.pid, "heartbeat_at": beat}, *rows], "json")
        print_rows(gates, "json")
    else:
        click.echo(f"daemon: {state}" + (f", last sign of life {beat} UTC" if beat else ""))
        print_rows(rows, "table")
        if gates:
            print_rows(gates, "table")
    if state in ("dead", "hung"):
        click.get_current_context().exit(1)


def _row(configuration: Configuration, database: Database, report: JobReport) -> dict[str, Json]:
    from streamdp.store.refusals import passed_over
    from streamdp.store.reports import last_rho
    from streamdp.store.rooms import held_by

    release, job = configuration.releases[report.job], report.job
    price = Item(0, nano_up(exact(release.epsilon)), last_rho(database, job))
    held = held_by(database, release.source, price)
    refused = [of for of, _ in passed_over(database, release.source) if of == job]
    return {
        "job": job,
        "state": "paused" if report.paused else _state(held, "active"),
        "held_by": _holders(held),
        "passed_over": len(refused),
        "releases": report.releases,
        "last_batch": report.last_batch,
        "released_at": local(report.last_released_at),
        "spent": epsilon_text(report.spent_nano),
        "burnt": report.burnt,
        "undelivered": report.undelivered,
        "dead_letters": report.dead_letters,
    }


def _stands_to(found: Sequence[Standing], last_batch: str | None) -> str | None:
    """The last batch that a job's last release stands for, if a gate let it stand."""
    return next((each.last for each in found if each.of == last_batch), None)


def _state(held: Held, free: str) -> str:
    """Where nothing renews a budget is exhausted; a window that will free only holds it back."""
    return "exhausted" if any(when == "never" for _, when in held) else "waits" if held else free


def _holders(held: Held) -> str | None:
    return "; ".join(dict.fromkeys(f"{cap} cap: {when}" for cap, when in held)) or None


def _gate_row(
    configuration: Configuration, database: Database, report: GateReport
) -> dict[str, Json]:
    """A gate is armed by its first question, so one that is not armed has still to be paid."""
    from streamdp.store.reports import last_rho
    from streamdp.store.rooms import held_by
    from streamdp.store.runs import open_run_of

    gate, run = configuration.all_gates()[report.gate], open_run_of(database, report.gate)
    price = Item(0, nano_up(exact(gate.epsilon)), last_rho(database, report.gate))
    if run is not None:
        price = Item(run.seq, run.epsilon_nano, run.rho_nano)
    held = held_by(database, configuration.source_of(gate), price)
    unarmed = "rearm it" if report.waits else _state(held, "ready")
    return {
        "gate": report.gate,
        "state": _state(held, "armed") if report.armed else unarmed,
        "held_by": _holders(held),
        "asked": report.asked,
        "accepted": report.accepted,
        "last_batch": report.last_batch,
        "last_accepted": report.last_accepted,
        "runs": report.runs,
        "spent": epsilon_text(report.spent_nano),
    }
