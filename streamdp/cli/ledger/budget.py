"""`streamdp budget`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import Amount, Form, print_rows
from streamdp.errors import ConfigurationError
from streamdp.privacy.amounts import UNBOUNDED
from streamdp.privacy.price import amount_text
from streamdp.text import iso, printable

if TYPE_CHECKING:
    from streamdp.database import Database
    from streamdp.reports.guarantee.budget import Budget
    from streamdp.reports.guarantee.outlook import Lasts
    from streamdp.store.ledger.cap_usage import Room
    from streamdp.types import Json


@click.command()
@config_option
@click.option("--ledger", "whole", is_flag=True, help="Every row of the ledger.")
@click.option("--recompute", "again", is_flag=True, help="Price the old events anew.")
@click.option(
    "--if",
    "asked",
    multiple=True,
    metavar="NAME=AMOUNT",
    help="For how long it would last at another price: of a JOB or gate (0: without it), of one job"
    " more (SOURCE.another), or under another cap (SOURCE.lifetime). May be repeated.",
)
@json_option
def budget(
    config_path: Path, whole: bool, again: bool, asked: tuple[str, ...], as_json: bool
) -> None:
    """Show what was spent, what is left, until when it lasts, and what each job takes.

    `worst batch` is the most that one record has lost, if its unit is in one batch only;
    `lifetime` is the most that a unit has lost that is in all of them; `fullest` the most that one
    has lost in a window. `fits next` is the largest price that the next batch has room for, and
    `has room` says when all releases of a batch fit. Caps on delta stand among the windows.
    `batches left` is at the prices of the configuration, a run of each gate with every batch;
    `at pace` goes by what the last 30 batches were charged. Below stands what each job takes.

    A ledger that is not the newest, by its anchor, has forgotten charges: it is refused.

    With --recompute, today's accountants read the events of all charges again and show those that
    they price otherwise; the exit code is then 1, unless each has only less of rho by now, as a
    sharper proof makes it. The ledger stays as it is.
    """
    from streamdp.reports.guarantee.budget import budgets, budgets_if, jobs_of
    from streamdp.reports.guarantee.outlook import what_if
    from streamdp.store.anchor.check import require_same_end
    from streamdp.store.reading.browse import ledger_page
    from streamdp.store.schema.migrations import open_to_read

    configuration = load_configuration(config_path)
    store, anchor = configuration.store.paths()
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
        try:
            other = what_if(configuration, dict(map(_assigned, asked)))
        except ConfigurationError as error:
            raise click.BadParameter(f"{error.what}; {error.hint}", param_hint="--if") from None
        found = budgets(configuration, database)
        then = budgets_if(configuration, database, found, other)
        windows = [_window(each.report.scope, room) for each in found for room in each.windows]
        if as_json:
            print_rows([_whole(each, then.get(each.report.scope)) for each in found], form)
            print_rows(windows, form)
            return
        print_rows([_line(each) for each in found], form, "budget", once=("measure", "burnt"))
        if windows:
            print_rows(windows, form, "windows", once=("scope", "measure"))
        takers = [
            {"scope": each.report.scope, **row}
            for each in found
            for row in jobs_of(each, Amount.of)
        ]
        if takers:
            print_rows(takers, form, "what each job takes", once=("scope",))
        for each in found:
            click.echo(printable(_said(each, then.get(each.report.scope))))


def _assigned(text: str) -> tuple[str, str]:
    name, equals, amount = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text}: write NAME=AMOUNT", param_hint="--if")
    return name.strip(), amount.strip()


def _recompute(database: Database, form: Form) -> None:
    """List charges whose event now costs another amount than was booked; changes nothing.

    A ledger that booked more rho than is proven by now is in order.
    """
    from streamdp.store.ledger.privacy_guarantee import recompute

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
    from streamdp.reports.guarantee.budget import ends_of

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
        **ends_of(budget, _day),
    }


def _line(budget: Budget) -> dict[str, Json]:
    """A budget as a line of a table, which has no room for both ends."""
    row = _row(budget)
    del row["until_at_pace"]
    row["at_pace"] = row.pop("batches_left_at_pace")
    return row


def _whole(budget: Budget, then: Lasts | None) -> dict[str, Json]:
    """A budget as one object."""
    from streamdp.reports.guarantee.budget import jobs_of, then_of

    asked = {} if then is None else {"if": then_of(budget, then, Amount.of, _day)}
    return {**_row(budget), "jobs": jobs_of(budget, Amount.of), **asked}


def _said(budget: Budget, then: Lasts | None) -> str:
    """Say how long a budget lasts, and how long it would."""
    from streamdp.reports.guarantee.outlook import in_words

    report, now = budget.report, budget.now
    cost = 0 if now.price is None else now.price.amount(report.measure)
    text = f"{report.scope}: at {amount_text(cost, report.measure)} a batch, {in_words(now)}"
    if budget.pace is not None and budget.pace.batches != now.batches:
        text += f"; at the pace of its last {budget.clock.number}, {in_words(budget.pace)}"
    if then is None:
        return text
    cost = 0 if then.price is None else then.price.amount(report.measure)
    text += f"\n  if so: at {amount_text(cost, report.measure)} a batch, {in_words(then)}"
    refused = f"; refused by the {', the '.join(then.refused_by)}" if then.refused_by else ""
    return text + refused


def _day(moment: int | None) -> str | None:
    from streamdp.reports.releases.periods import day_of

    return None if moment is None else day_of(moment)


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
