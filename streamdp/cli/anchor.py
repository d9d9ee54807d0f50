"""`streamdp anchor adopt`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import (
    config_option,
    json_option,
    load_configuration,
    moment,
    operator_option,
    reason_option,
    store_beside,
)
from streamdp.cli.output import print_rows
from streamdp.errors import IntegrityError
from streamdp.text import iso

if TYPE_CHECKING:
    from streamdp.store.anchor import Difference


NOTHING_LOST = "ledger and anchor agree: nothing is charged, and the store can be worked with"
"""What is said, and is no failure, where there is nothing to do: a recovery may be run again."""


@click.command()
@click.option("--assume-spent", is_flag=True, required=True, help="Charge all that is missing.")
@operator_option
@reason_option
@config_option
def reconcile(assume_spent: bool, operator: str, reason: str, config_path: Path) -> None:
    """Charge what the anchor knows and the ledger does not, and go on from there.

    For a store that was restored from a backup, or is an older copy: what was spent since is
    charged and burnt, since nobody can tell what was released for it. Where the
    store is gone a new one is made, with these charges alone. Your name and reason stay in the
    ledger.
    """
    from streamdp.daemon.lock import store_lock
    from streamdp.store.reconcile import agree
    from streamdp.store.reconcile import reconcile as reconcile_store

    if not assume_spent:
        raise click.UsageError("what is missing can only be assumed spent: --assume-spent")
    configuration = load_configuration(config_path)
    path, anchor = configuration.store.paths()
    about = {"operator": operator, "reason": reason}
    with store_lock(path):
        if agree(path, anchor):
            click.echo(NOTHING_LOST)
            return
        terms, data = configuration.terms(), configuration.data()
        found = reconcile_store(path, anchor, terms, data, about, int(time.time()))
    _say_missing(found)


def _say_missing(found: Difference) -> None:
    for scope, total in found.totals().items():
        click.echo(f"{scope}: charged {total} that the ledger did not know of")
    click.echo(
        f"{len(found.missing)} charges written behind row {found.ledger_seq}; the store can be"
        " worked with again"
    )


@click.command()
@config_option
@json_option
def verify(config_path: Path, as_json: bool) -> None:
    """Check every page, row and release of the store, and that its anchor agrees.

    Reads alone, beside a running daemon. Exits with 6 if something was altered.
    """
    from streamdp.reports.verification import examined
    from streamdp.store.migrations import open_current

    path, anchor = load_configuration(config_path).store.paths()
    rows = [
        {"check": each.what, "state": "ok" if each.sound else "WRONG", "finding": each.finding}
        for each in examined(open_current(path), anchor)
    ]
    print_rows(rows, "json" if as_json else "table")
    if any(row["state"] == "WRONG" for row in rows):
        click.get_current_context().exit(IntegrityError.exit_code)


@click.group()
def anchor() -> None:
    """Manage the anchor, the file that detects a store restored from a backup."""


@anchor.command()
@click.option(
    "--spent",
    "said",
    multiple=True,
    metavar="NAME=AMOUNT",
    help="The most that a source, or a job, has spent since; in the measure of the caps.",
)
@click.option("--until", callback=moment, help="When the lost store stopped (ISO). Default: now.")
@click.option("--kept", is_flag=True, help="No file or partition of a source was removed since.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@operator_option
@reason_option
@config_option
def adopt(
    said: tuple[str, ...],
    until: int | None,
    kept: bool,
    yes: bool,
    operator: str,
    reason: str,
    config_path: Path,
) -> None:
    """Go on where the anchor is lost: charge the most that may have been spent since.

    Nobody can tell whether the store is the newest. By default each source is charged the most that
    the schedules of the configuration and the caps admit between what the store knows and now: the
    cap of each batch that a release may have paid for. Use the configuration that the lost store
    worked with. --spent states a bound that you know, 0 where nothing was spent: each batch that
    may have been paid for then counts as having borne it.

    What is charged is shown first, and stays in the ledger with your name and reason.
    """
    from contextlib import closing

    from streamdp.daemon.lock import store_lock
    from streamdp.planning import lost_spending
    from streamdp.store.clock_guard import written_at
    from streamdp.store.migrations import open_to_read
    from streamdp.store.reconcile import adopt as adopt_anchor
    from streamdp.store.reconcile import agree

    configuration, now = load_configuration(config_path), int(time.time())
    path, where = configuration.store.paths()
    if until is not None and until > now:
        raise click.BadParameter("it is in the future", param_hint="'--until'")
    with store_lock(path):
        if agree(path, where):
            click.echo(NOTHING_LOST)
            return
        store_beside(configuration, now).close()
        with closing(open_to_read(path)) as database:
            written = written_at(database)
            bounds = lost_spending.bounds(
                configuration,
                database,
                now if until is None else until,
                lost_spending.stated(configuration, database, said),
                kept=kept,
            )
        since = iso(written)
        click.echo(f"the store was written last at {since}; charged for what was spent since:")
        print_rows(lost_spending.rows(bounds), "table")
        if not yes:
            click.confirm("Charge it?", abort=True)
        terms, data = configuration.terms(), configuration.data()
        adopt_anchor(
            path, where, bounds, terms, data, {"operator": operator, "reason": reason}, now
        )
    click.echo(f"the store goes on with the anchor {where}")
