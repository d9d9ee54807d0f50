"""`streamdp status`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import local, print_rows
from streamdp.privacy.amounts import epsilon_text, exact, nano_up
from streamdp.types import Json

if TYPE_CHECKING:
    from streamdp.store.gate_reports import GateReport, Standing
    from streamdp.store.reports import JobReport

DEAD_AFTER = 120
"""Seconds without a heartbeat after which a daemon that did not stop counts as dead."""


@click.command()
@config_option
@json_option
def status(config_path: Path, as_json: bool) -> None:
    """Show whether the daemon lives and where each job stands; works without it.

    Exits with 1 if the daemon died: it has a lock or a heartbeat but gives no sign of life.
    """
    import time

    from streamdp.daemon.lock import is_locked
    from streamdp.store.database import connect_to_read
    from streamdp.store.gate_reports import gate_report, standing
    from streamdp.store.reports import heart, job_report, scope_reports

    configuration = load_configuration(config_path)
    database = connect_to_read(configuration.store.path)
    pulse, now = heart(database), int(time.time())
    if is_locked(configuration.store.path):
        silent = pulse.heartbeat_at is not None and now - pulse.heartbeat_at > DEAD_AFTER
        state = "hung" if silent else "running"
    else:
        state = "dead" if pulse.pid is not None else "stopped"
    rows: list[dict[str, Json]] = []
    left = {
        scope.scope: scope.lifetime_cap_nano - scope.lifetime_spent_nano
        for scope in scope_reports(database)
    }
    for job, release in configuration.releases.items():
        report, price = job_report(database, job), nano_up(exact(release.epsilon))
        rows.append(_row(report, left.get(release.source, price), price))
        if configuration.gated():
            found = list(standing(database, job, now).values())
            rows[-1]["stands_to"] = _stands_to(found[-1:], report.last_batch)
    gates = [
        _gate_row(
            gate_report(database, name, now),
            left.get(configuration.source_of(gate)),
            nano_up(exact(gate.epsilon)),
        )
        for name, gate in configuration.all_gates().items()
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


def _row(report: JobReport, left_nano: int, price_nano: int) -> dict[str, Json]:
    state = "exhausted" if left_nano < price_nano else "active"
    return {
        "job": report.job,
        "state": "paused" if report.paused else state,
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


def _gate_row(report: GateReport, left_nano: int | None, price_nano: int) -> dict[str, Json]:
    """A gate is armed by its first question, so one that is not armed has still to be paid."""
    spent = left_nano is not None and left_nano < price_nano
    unarmed = "rearm it" if report.waits else "exhausted" if spent else "ready"
    return {
        "gate": report.gate,
        "state": "armed" if report.armed else unarmed,
        "asked": report.asked,
        "accepted": report.accepted,
        "last_batch": report.last_batch,
        "last_accepted": report.last_accepted,
        "runs": report.runs,
        "spent": epsilon_text(report.spent_nano),
    }
