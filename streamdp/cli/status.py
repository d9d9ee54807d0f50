"""`streamdp status`, `streamdp outbox` and `streamdp logs`."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import (
    config_option,
    json_option,
    load_configuration,
    moment,
    store_beside,
)
from streamdp.cli.output import print_rows, sparkline
from streamdp.errors import StreamdpError
from streamdp.privacy.amounts import NANO, epsilon_text
from streamdp.privacy.price import amount_text
from streamdp.text import Figure, iso, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamdp.config import Configuration
    from streamdp.database import Database
    from streamdp.reports.state import DaemonState, GateStatus, JobView
    from streamdp.store.problems import BatchProblem
    from streamdp.store.pulse import Pulse
    from streamdp.store.reading.reports import Heart
    from streamdp.types import Json


WIDE = 130
"""Columns of a terminal that has room for a picture of each job."""

QUIET = ("since", "passed_over", "burnt", "undelivered", "dead_letters", "suspect", "stands_to")
"""Columns that are left out on a terminal where they are empty or 0."""

FAILED = frozenset({"failing", "late", "rests"})
"""States of a job that somebody should look at, though the daemon lives."""


@click.command()
@config_option
@click.option("--watch", is_flag=True, help="Show it anew every two seconds, until Ctrl-C.")
@click.option(
    "--probe",
    type=click.Choice(["live", "ready"]),
    help="Say one word for the probe of a container: whether the daemon's heart beats, or also"
    " whether it can write its store. Exits with 1 if not.",
)
@json_option
def status(config_path: Path, watch: bool, probe: str | None, as_json: bool) -> None:
    """Show whether the daemon lives, where each job stands, and what holds it; works without it.

    A job is active while the daemon works (else `daemon stopped`, `daemon dead` or `daemon hung`),
    or what holds it is said: paused, waits (for a cap to free or a gate to be
    rearmed), exhausted, rests (after burnt charges), failing (its source cannot be read), late
    (it has missed a turn of its schedule: a question is slow or hangs), empty (no batch has
    arrived). Below stand batches that are not released, or that changed afterwards,
    with the reason. `passed over` counts batches that a cap refused.

    If no daemon works and the next run would be refused (by the ledger, its anchor or the clock),
    that is said first. Of a ledger longer than 5,000 rows the newest are looked at; `streamdp
    verify` looks at all.

    Exits with what the next run would exit with, if that is refused; with 1 if the daemon died or
    hangs, or cannot write its store, or the clock went back, or a job is failing, late or rests, or
    has dead letters; else with 3 if a job is exhausted; else with 0.
    """
    configuration = load_configuration(config_path)
    if probe is not None:
        why = _why_unfit(configuration.store.path, probe)
        click.echo(why or probe)
        click.get_current_context().exit(1 if why else 0)
    while watch:
        click.clear()
        _show(configuration, as_json=as_json)
        try:
            time.sleep(2)
        except KeyboardInterrupt:
            return
    click.get_current_context().exit(_show(configuration, as_json=as_json))


def _why_unfit(store: Path, probe: str) -> str:
    """Why a probe fails; nothing if it does not."""
    from streamdp.reports.state import is_alive, why_not_ready
    from streamdp.store.migrations import open_to_read

    now = int(time.time())
    if probe == "ready":
        return why_not_ready(open_to_read(store), store, now)
    return "" if is_alive(store, now) else "no sign of life"


def _show(configuration: Configuration, *, as_json: bool) -> int:
    """Print all that is known now; returns the exit code that fits."""
    from streamdp.daemon.lock import is_locked
    from streamdp.reports.holds import clock_errors, wrong_now
    from streamdp.reports.state import of_daemon, overview
    from streamdp.reports.verification import refusal
    from streamdp.store.migrations import is_upgrade_pending, open_to_read

    path, now = configuration.store.path, int(time.time())
    database = open_to_read(path)
    found = overview(configuration, database, now, locked=is_locked(path))
    state, pulse, beat, jobs = found.daemon, found.pulse, found.beat, found.jobs
    refused = None
    if state not in ("running", "hung") and not is_upgrade_pending(path):
        anchor = configuration.store.paths()[1]
        refused = refusal(database, anchor, now, configuration.store.max_clock_step)
    behind = None if refused else next(clock_errors(configuration, database, now, ()), None)
    gates = [_gate_row(each) for each in found.gates]
    wrong = [_problem_row(each) for each in wrong_now(configuration, database)]
    if as_json:
        _print_json(configuration, state, pulse, beat, jobs, gates, wrong)
        print_rows([_refusal_row(each) for each in [refused] if each], "json")
        print_rows([{**_refusal_row(each), "type": "clock"} for each in [behind] if each], "json")
    else:
        if refused is not None:
            click.echo(printable(f"the next run is refused: {refused}"))
        if behind is not None:
            click.echo(printable(str(behind)))
        for alert in of_daemon(state, beat):
            click.echo(printable(f"{alert.of}: {alert.text}"))
        _print_tables(configuration, database, state, pulse, jobs, [gates, wrong])
    if refused is not None:
        return refused.exit_code
    if state in ("dead", "hung") or (beat is not None and beat.store) or behind is not None:
        return 1
    if any(each.condition in FAILED or each.dead_letters for each in jobs):
        return 1
    return 3 if any(each.condition == "exhausted" for each in jobs) else 0


def _refusal_row(error: StreamdpError) -> dict[str, Json]:
    """The error of the next run as an object."""
    return {"type": "refusal", "code": error.code, "where": error.where, "reason": error.what}


def _print_json(
    configuration: Configuration,
    state: DaemonState,
    pulse: Heart,
    beat: Pulse | None,
    jobs: Sequence[JobView],
    gates: list[dict[str, Json]],
    wrong: list[dict[str, Json]],
) -> None:
    """Print one object a line; its `type` says what it is about."""
    first = {
        "type": "daemon",
        "daemon": state,
        "pid": pulse.pid,
        "heartbeat_at": iso(pulse.heartbeat_at),
        "store": "" if beat is None else beat.store,
        "asking": [] if beat is None else [asdict(each) for each in beat.asking],
    }
    print_rows([first, *(_whole(configuration, each) for each in jobs)], "json")
    print_rows([{"type": "gate", **row} for row in gates], "json")
    print_rows([{"type": "problem", **row} for row in wrong], "json")


def _print_tables(
    configuration: Configuration,
    database: Database,
    state: DaemonState,
    pulse: Heart,
    jobs: Sequence[JobView],
    more: list[list[dict[str, Json]]],
) -> None:
    """Print the daemon's state, the jobs, what holds them, and further tables that have rows."""
    signs = [pulse.heartbeat_at] if pulse.heartbeat_at else []
    if signs and state == "stopped":  # it beats no more while it ends, and may release
        signs += [each.last_released_at or 0 for each in jobs]
    beat = iso(max(signs)) if signs else ""
    click.echo(f"daemon: {state}" + (f", last sign of life {beat}" if beat else ""))
    gated = bool(configuration.gated())
    rows = [_row(each, gated=gated) for each in jobs]
    if sys.stdout.isatty():
        rows = _told(rows)
        for row in rows if state != "running" else []:
            row["next_at"] = row["next_at"] and "when the daemon runs"
        for row in rows if shutil.get_terminal_size().columns >= WIDE else []:
            row["recent"] = _recent(configuration, database, row["job"])
    print_rows(rows, "table")
    for each in jobs:
        for hold in each.holds:
            click.echo(printable(f"{each.job}: {hold.told}"))
    for table in filter(None, more):
        print_rows(table, "table")


def _row(view: JobView, *, gated: bool) -> dict[str, Json]:
    """A job in a table: what a person looks for first."""
    row: dict[str, Json] = {
        "job": view.job,
        "state": view.state,
        "since": iso(view.holds[0].since) if view.holds else None,
        "last_batch": view.last_batch,
        "released_at": iso(view.last_released_at),
        "next_at": iso(view.next_at),
        "releases": view.releases,
        "spent": Figure(amount_text(view.spent, view.measure)),
        "passed_over": view.passed_over,
        "burnt": view.burnt,
        "undelivered": view.undelivered,
        "dead_letters": view.dead_letters,
        "suspect": "; ".join(view.suspect),
    }
    return row | ({"stands_to": view.stands_to} if gated else {})


def _told(rows: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """Rows for a person, without columns that say nothing of any job."""
    quiet = {name for name in QUIET if not any(row.get(name) for row in rows)}
    return [{name: row[name] for name in row if name not in quiet} for row in rows]


def _whole(configuration: Configuration, view: JobView) -> dict[str, Json]:
    """A job as one object, with all that holds it."""
    from streamdp.reports.state import holders

    return {
        "type": "job",
        **_row(view, gated=bool(configuration.gated())),
        "measure": view.measure,
        "spent": view.spent / NANO,
        "spent_exact": epsilon_text(view.spent),
        "held_by": holders(view.held),
        "holds": [
            {**asdict(hold), "since": iso(hold.since), "until": hold.until or None}
            for hold in view.holds
        ],
    }


def _recent(configuration: Configuration, database: Database, job: str) -> str:
    """Sparkline of the middle series of a job's last releases."""
    from streamdp.cli.web import columns_of
    from streamdp.reports.releases.series import picture
    from streamdp.store.reading.browse import newest_releases

    found = newest_releases(database, job, 20)
    series = picture(found, columns_of(configuration, job)).series
    return sparkline(series[len(series) // 2].best.values, 20) if series else ""


def _problem_row(problem: BatchProblem) -> dict[str, Json]:
    return {
        "problem_of": problem.about,
        "batch": problem.batch or None,
        "code": problem.code,
        "since": iso(problem.since) if problem.since else None,
        "reason": problem.reason,
    }


def _gate_row(status: GateStatus) -> dict[str, Json]:
    from streamdp.reports.state import holders

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
        "spent": amount_text(report.spent_nano, report.measure),
    }


@click.command()
@click.option("--retry", metavar="ID", help="Try the dead letter of this release or notice again.")
@click.option("--retry-all", is_flag=True, help="Try all dead letters again.")
@config_option
@json_option
def outbox(retry: str | None, retry_all: bool, config_path: Path, as_json: bool) -> None:
    """Show releases that a sink has not taken yet, and when each is tried next.

    A sink is tried again after 2, 4, 8 seconds and so on, at most an hour. Webhooks and commands
    give up after their number of attempts; then it is a dead letter, until --retry.
    """
    from streamdp.store.migrations import open_to_read
    from streamdp.store.reading.reports import owed_rows

    configuration = load_configuration(config_path)
    database = open_to_read(configuration.store.path)
    if retry is not None or retry_all:
        _retry(configuration, retry)
        return
    rows = [
        {
            "id": row["release_id"],
            "job": row["job"],
            "batch": row["batch"],
            "sink": row["sink"],
            "state": "waiting" if row["dead_at"] is None else "dead letter",
            "attempts": row["attempts"],
            "next_at": iso(row["next_at"]) if row["dead_at"] is None else None,
            "reason": row["reason"],
        }
        for row in owed_rows(database)
    ]
    print_rows(rows, "json" if as_json else "table", "undelivered")
    if not rows and not as_json:
        click.echo("everything is delivered", err=True)


def _retry(configuration: Configuration, release_id: str | None) -> None:
    """Ask for another delivery through the store; a running daemon looks every few seconds.

    Raises:
        StreamdpError: There is no such dead letter.
    """
    from streamdp.store import outbox as store
    from streamdp.store.database import transaction

    now = int(time.time())
    database = store_beside(configuration, now)
    with transaction(database):
        revived = store.retry(database, release_id, now)
    if not revived:
        raise StreamdpError(
            f"there is no dead letter of {release_id}" if release_id else "there are none",
            hint="`streamdp outbox` lists them",
        )
    click.echo(f"{revived} will be tried again")


COLOURS = {"debug": "bright_black", "info": "green", "warning": "yellow", "error": "red"}


@click.command()
@config_option
@click.option("--job", help="Only of this job.")
@click.option("--batch", help="Only of this batch.")
@click.option("--release", help="Only of this release id.")
@click.option(
    "--level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="debug",
    show_default=True,
    help="Only lines at least as grave.",
)
@click.option("--since", callback=moment, help="Only from this time on (ISO, UTC).")
@click.option("-f", "--follow", "following", is_flag=True, help="Wait for more.")
@json_option
def logs(
    config_path: Path,
    job: str | None,
    batch: str | None,
    release: str | None,
    level: str,
    since: int | None,
    following: bool,
    as_json: bool,
) -> None:
    """Read the log file, rotated parts included."""
    from streamdp.log import Filter, follow, read
    from streamdp.text import iso

    path = load_configuration(config_path).log.path
    if path is None:
        raise StreamdpError("this configuration writes no log file", hint="set log.path")
    if not (path.exists() or following):
        raise StreamdpError("there is no log yet", where=str(path), hint="`streamdp run` writes it")
    wanted = Filter(job, batch, release, level, (iso(since) or "").removesuffix("Z") or None)
    try:
        for line in read(path, wanted):
            _print_line(line, as_json)
        if following:
            for line in follow(path, wanted):
                _print_line(line, as_json)
    except KeyboardInterrupt:
        sys.exit(0)


def _print_line(line: dict[str, Json], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(line))
        return
    shown = dict(line)
    stamp, level = shown.pop("timestamp", ""), shown.pop("level", "")
    event = shown.pop("event", "")
    rest = printable(" ".join(f"{name}={value}" for name, value in shown.items()), lines=False)
    stamp, level, event = (printable(str(each), lines=False) for each in (stamp, level, event))
    click.echo(f"{stamp[:19]} {click.style(f'{level:7}', fg=COLOURS.get(level))} {event:22} {rest}")
