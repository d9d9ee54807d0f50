"""`streamdp budget`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import Amount, Form, print_rows
from streamdp.privacy.amounts import UNBOUNDED
from streamdp.text import iso

if TYPE_CHECKING:
    from streamdp.database import Database
    from streamdp.reports.guarantee.budget import Budget
    from streamdp.store.ledger.cap_usage import Room
    from streamdp.types import Json


@click.command()
@config_option
@click.option("--ledger", "whole", is_flag=True, help="Every row of the ledger.")
@click.option("--recompute", "again", is_flag=True, help="Price the old events anew.")
@json_option
def budget(config_path: Path, whole: bool, again: bool, as_json: bool) -> None:
    """Show what was spent, what is left, and for how many releases it lasts.

    `worst batch` is the most that one record has lost, if its unit is in one batch only;
    `lifetime` is the most that a unit has lost that is in all of them; `fullest` the most that one
    has lost in a window. `fits next` is the largest price that the next batch has room for, and
    `has room` says when all releases of a batch fit. Caps on delta stand among the windows.

    A ledger that is not the newest, by its anchor, has forgotten charges: it is refused.

    With --recompute, today's accountants read the events of all charges again and show those that
    they price otherwise; the exit code is then 1, unless each has only less of rho by now, as a
    sharper proof makes it. The ledger stays as it is.
    """
    from streamdp import wiring
    from streamdp.reports.guarantee.budget import budgets
    from streamdp.store.anchor.check import require_same_end
    from streamdp.store.reading.browse import ledger_page
    from streamdp.store.schema.schema import open_to_read

    configuration = load_configuration(config_path)
    store, anchor = wiring.store_paths(configuration)
    database = open_to_read(store)
    require_same_end(database, anchor)
    form: Form = "json" if as_json else "table"
    if again:
        _recompute(database, form)
    elif whole:
        rows = ledger_page(database, limit=-1)[::-1]
        amounts = (
            *("epsilon_nano", "rho_nano", "lifetime_spent_nano", "lifetime_rho_nano"),
            "lifetime_cap_nano",
        )
        for row in rows:
            row["at"] = iso(row["at"])
            for name in amounts:
                row[name.removesuffix("_nano")] = _amount(row.pop(name))
            for name in ("delta_atto", "lifetime_delta_atto"):
                row[name.removesuffix("_atto")] = Amount.of(row.pop(name), "delta")
        print_rows(rows, form)
    else:
        found = budgets(configuration, database)
        rows = [_row(each) for each in found]
        windows = [_window(each.report.scope, room) for each in found for room in each.windows]
        print_rows(rows, form, "budget")
        if windows:
            print_rows(windows, form, "windows")


def _recompute(database: Database, form: Form) -> None:
    """List charges whose event now costs another amount than was booked; changes nothing.

    A ledger that booked more rho than is proven by now is in order.
    """
    from streamdp.store.ledger.recompute import recompute

    charges = list(recompute(database))
    found = [charge for charge in charges if charge.differs]
    rows = [
        {
            "seq": charge.seq,
            "scope": charge.scope,
            "epsilon": _amount(charge.epsilon_nano),
            "epsilon_now": _amount(charge.epsilon_now),
            "rho": Amount.of(charge.rho_nano),
            "rho_now": Amount.of(charge.rho_now),
            "delta": Amount.of(charge.delta_atto, "delta"),
            "delta_now": Amount.of(charge.delta_now, "delta"),
        }
        for charge in found
    ]
    print_rows(rows, form, "differences")
    click.echo(f"{len(charges)} charges read again, {len(found)} differ", err=True)
    if not all(charge.falls for charge in found):
        click.get_current_context().exit(1)


def _amount(nano: int | None) -> Amount:
    """An amount; null means unbounded."""
    return Amount.of(UNBOUNDED if nano is None else nano)


def _row(budget: Budget) -> dict[str, Json]:
    report = budget.report
    return {
        "scope": report.scope,
        "measure": report.measure,
        "worst_batch": Amount.of(budget.worst_nano),
        "batch_cap": Amount.of(report.batch_cap_nano),
        "lifetime": Amount.of(report.lifetime_spent_nano),
        "lifetime_cap": Amount.of(report.lifetime_cap_nano),
        "left": Amount.of(budget.left_nano),
        "fits_next": Amount.of(budget.fits_next_nano),
        "burnt": Amount.of(report.burnt_nano),
        "batches_left": budget.batches_left,
    }


def _window(scope: str, room: Room) -> dict[str, Json]:
    return {
        "scope": scope,
        "window": room.limit.name,
        "measure": room.limit.measure,
        "cap": Amount.of(room.limit.nano, room.limit.measure),
        "fullest": Amount.of(room.fullest_nano, room.limit.measure),
        "fits_next": Amount.of(room.left_nano, room.limit.measure),
        "has_room": room.frees,
    }
