"""`streamdp budget`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import Form, local, print_rows
from streamdp.privacy.amounts import epsilon_text, exact, nano_up
from streamdp.privacy.filters import Item

if TYPE_CHECKING:
    from sqlite_utils import Database

    from streamdp.config import Configuration
    from streamdp.store.reports import ScopeReport
    from streamdp.store.rooms import Room
    from streamdp.types import Json


@click.command()
@config_option
@click.option("--ledger", "whole", is_flag=True, help="Every row of the ledger.")
@json_option
def budget(config_path: Path, whole: bool, as_json: bool) -> None:
    """Show what was spent, what is left, and for how many releases it lasts.

    `worst batch` is the most that one record has lost, if its unit is in one batch only;
    `lifetime` is the most that a unit has lost that is in all of them; `fullest` the most that one
    has lost in a window. `fits next` is the largest epsilon that the next batch has room for, and
    `has room` says when all releases of a batch fit.
    """
    from streamdp.store.database import connect_to_read
    from streamdp.store.reports import ledger_rows, scope_reports
    from streamdp.store.rooms import rooms

    configuration = load_configuration(config_path)
    database = connect_to_read(configuration.store.path)
    form: Form = "json" if as_json else "table"
    if whole:
        rows = ledger_rows(database)
        amounts = ("epsilon_nano", "lifetime_spent_nano", "lifetime_cap_nano")
        for row in rows:
            row["at"] = local(row["at"])
            for name in amounts:
                row[name.removesuffix("_nano")] = epsilon_text(row.pop(name))
        print_rows(rows, form)
    else:
        rows, windows = [], []
        for report in scope_reports(database):
            price = _price(configuration, database, report.scope)
            found = rooms(database, report.scope, price)
            source = configuration.sources.get(report.scope)
            growing = source is not None and source.is_growing()
            rows.append(_row(report, found, price, growing=growing))
            windows += [_window(report.scope, room) for room in found[2:]]
        print_rows(rows, form, "budget")
        if windows:
            print_rows(windows, form, "windows")


def _price(configuration: Configuration, database: Database, scope: str) -> Item:
    """What all releases of a batch cost; in rho as they last did."""
    from streamdp.config.gate_checks import gates_of, price_of_gates
    from streamdp.store.reports import last_rho

    jobs = {name: job for name, job in configuration.releases.items() if job.source == scope}
    epsilon = sum(nano_up(exact(job.epsilon)) for job in jobs.values())
    epsilon += price_of_gates(configuration, scope)
    names = [*jobs, *gates_of(configuration, scope)]
    return Item(0, epsilon, sum(last_rho(database, name) for name in names))


def _row(
    report: ScopeReport, found: tuple[Room, ...], price: Item, *, growing: bool
) -> dict[str, Json]:
    """A record of a growing source is in all batches from its own on."""
    worst = report.lifetime_spent_nano if growing else report.worst_batch_nano
    left = report.lifetime_cap_nano - report.lifetime_spent_nano
    fits = min(room.left_nano for room in found if room.limit.measure == "epsilon")
    cost = price.epsilon_nano
    return {
        "scope": report.scope,
        "worst_batch": epsilon_text(worst),
        "batch_cap": epsilon_text(report.batch_cap_nano),
        "lifetime": epsilon_text(report.lifetime_spent_nano),
        "lifetime_cap": epsilon_text(report.lifetime_cap_nano),
        "left": epsilon_text(left),
        "fits_next": epsilon_text(fits),
        "burnt": epsilon_text(report.burnt_nano),
        "batches_left": max(left, 0) // cost if cost else None,
    }


def _window(scope: str, room: Room) -> dict[str, Json]:
    return {
        "scope": scope,
        "window": room.limit.name,
        "measure": room.limit.measure,
        "cap": epsilon_text(room.limit.nano),
        "fullest": epsilon_text(room.fullest_nano),
        "fits_next": epsilon_text(room.left_nano),
        "has_room": room.frees,
    }
