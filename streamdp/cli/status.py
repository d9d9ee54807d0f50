"""`streamdp status`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import local, print_rows
from streamdp.privacy.amounts import epsilon_text

if TYPE_CHECKING:
    from sqlite_utils import Database

    from streamdp.config import Configuration
    from streamdp.reports.status import GateStatus, JobStatus
    from streamdp.types import Json


WIDE = 130
"""Columns of a terminal that has room for a picture of each job."""


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
    from streamdp.reports.status import daemon_state, gate_status, job_status
    from streamdp.store.reports import heart
    from streamdp.store.schema import open_to_read

    configuration = load_configuration(config_path)
    database = open_to_read(configuration.store.path)
    pulse, now = heart(database), int(time.time())
    state = daemon_state(pulse, now, locked=is_locked(configuration.store.path))
    rows = [
        _row(configuration, job_status(configuration, database, job, now))
        for job in configuration.releases
    ]
    gates = [
        _gate_row(gate_status(configuration, database, name, now))
        for name in configuration.all_gates()
    ]
    beat = local(pulse.heartbeat_at)
    if as_json:
        print_rows([{"daemon": state, "pid": pulse.pid, "heartbeat_at": beat}, *rows], "json")
        print_rows(gates, "json")
    else:
        if sys.stdout.isatty() and shutil.get_terminal_size().columns >= WIDE:
            for row in rows:
                row["recent"] = _recent(configuration, database, row["job"])
        click.echo(f"daemon: {state}" + (f", last sign of life {beat} UTC" if beat else ""))
        print_rows(rows, "table")
        if gates:
            print_rows(gates, "table")
    if state in ("dead", "hung"):
        click.get_current_context().exit(1)


def _row(configuration: Configuration, status: JobStatus) -> dict[str, Json]:
    from streamdp.reports.status import holders

    report = status.report
    return {
        "job": report.job,
        "state": status.state,
        "held_by": holders(status.held),
        "passed_over": status.passed_over,
        "releases": report.releases,
        "last_batch": report.last_batch,
        "released_at": local(report.last_released_at),
        "spent": epsilon_text(report.spent_nano),
        "burnt": report.burnt,
        "undelivered": report.undelivered,
        "dead_letters": report.dead_letters,
        **({"stands_to": status.stands_to} if configuration.gated() else {}),
    }


def _recent(configuration: Configuration, database: Database, job: str) -> str:
    """The middle series of a job's last releases, the size of a word."""
    from streamdp.cli.web import columns_of
    from streamdp.reports.series import picture
    from streamdp.reports.sparklines import sparkline
    from streamdp.store.browse import newest_releases

    found = newest_releases(database, job, 20)
    series = picture(found, columns_of(configuration, job)).series
    return sparkline(series[len(series) // 2].best.values, 20) if series else ""


def _gate_row(status: GateStatus) -> dict[str, Json]:
    from streamdp.reports.status import holders

    report = status.report
    return {
        "gate": report.gate,
        "state": status.state,
        "held_by": holders(status.held),
        "asked": report.asked,
        "accepted": report.accepted,
        "last_batch": report.last_batch,
        "last_accepted": report.last_accepted,
        "runs": report.runs,
        "spent": epsilon_text(report.spent_nano),
    }
