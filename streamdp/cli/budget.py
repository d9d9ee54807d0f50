"""`streamdp budget`, `streamdp cap` and `streamdp statement`."""

from __future__ import annotations

import getpass
import json
import math
import os
import time
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import (
    complete_job,
    config_option,
    json_option,
    load_configuration,
    own_store,
    require_job,
)
from streamdp.cli.output import Amount, Form, print_rows
from streamdp.errors import ConfigurationError
from streamdp.privacy.amounts import NANO, UNBOUNDED, exact, number_text
from streamdp.privacy.filters import LARGEST_CAP, Caps
from streamdp.privacy.price import amount_text
from streamdp.text import iso, printable, require_name
from streamdp.types import Json

if TYPE_CHECKING:
    from streamdp.database import Database
    from streamdp.reports.budget import Budget, Lasts
    from streamdp.store.ledger.ledger import Room


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
    from streamdp.reports.budget import budgets, budgets_if, jobs_of, what_if
    from streamdp.store.anchor import require_same_end
    from streamdp.store.migrations import open_to_read
    from streamdp.store.reading.browse import ledger_page

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
    from streamdp.reports.budget import ends_of

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
    from streamdp.reports.budget import jobs_of, then_of

    asked = {} if then is None else {"if": then_of(budget, then, Amount.of, _day)}
    return {**_row(budget), "jobs": jobs_of(budget, Amount.of), **asked}


def _said(budget: Budget, then: Lasts | None) -> str:
    """Say how long a budget lasts, and how long it would."""
    from streamdp.reports.budget import in_words

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
    from streamdp.reports.releases.sentences import day_of

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


@click.command()
@click.argument("scope")
@click.option("--batch", help="New cap of each batch, in the measure of the caps in force.")
@click.option("--lifetime", help="New cap over the life of the source, in the same measure.")
@click.option("--reason", required=True, help="Why; it stays in the ledger for ever.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@config_option
def cap(
    scope: str,
    batch: str | None,
    lifetime: str | None,
    reason: str,
    yes: bool,
    config_path: Path,
) -> None:
    """Change the caps of SCOPE (the name of a source).

    The ledger keeps the change, your login name and the reason.

    Without --batch and --lifetime the ledger takes over what the configuration says, windows
    included: edit it first. With them, set the same value in the configuration afterwards.

    Raising a cap lets more be learned about everyone whose records are in the source.
    """
    from streamdp.store.ledger import ledger

    configuration = load_configuration(config_path)
    require_name(scope, configuration.sources, "source")
    now = int(time.time())
    with own_store(configuration, now) as store:
        old = ledger.caps_of(store.database, scope)
        asked = batch or lifetime
        new = _changed(old, batch, lifetime) if asked else configuration.caps_of(scope)
        if new == old:
            raise click.UsageError("the ledger has these caps: edit the configuration first")
        print_rows(_compared(old, new), "table", f"caps of {scope}")
        if not yes:
            click.confirm("Write this into the ledger?", abort=True)
        with store.transaction():
            about = {"by": who(), "reason": reason}
            ledger.set_caps(store.database, scope, new, about, now)


def _changed(old: Caps, batch: str | None, lifetime: str | None) -> Caps:
    new = Caps(
        _nano(batch) if batch else old.batch_nano,
        _nano(lifetime) if lifetime else old.lifetime_nano,
        old.windows,
        old.measure,
    )
    if new.batch_nano > new.lifetime_nano:
        raise click.UsageError("a batch cannot be allowed more than all batches together")
    return new


def _compared(old: Caps, new: Caps) -> list[dict[str, Json]]:
    """Each cap before and after, by its width."""
    widths = {(limit.name, limit.measure): None for limit in (*old.limits, *new.limits)}
    return [
        {
            "cap": name,
            "measure": measure,
            "before": _cap_text(old, *key),
            "after": _cap_text(new, *key),
        }
        for key in widths
        for name, measure in [key]
    ]


def _cap_text(caps: Caps, name: str, measure: str) -> str:
    found = [limit.nano for limit in caps.limits if (limit.name, limit.measure) == (name, measure)]
    return number_text(min(found), measure) if found else "none"


def who() -> str:
    """Login name, or number of the user in a container that has no names."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def _nano(text: str) -> int:
    try:
        amount = exact(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    nano = math.floor(amount * NANO)
    if nano <= 0:
        raise click.BadParameter("a cap must be positive")
    if amount > LARGEST_CAP:
        raise click.BadParameter(f"a cap is at most {LARGEST_CAP}")
    return nano


@click.command()
@click.argument("job", required=False, shell_complete=complete_job)
@click.option(
    "--delta",
    help="For figures with a delta. Default 1e-9, or twice what releases have spent of delta, if"
    " that is more.",
)
@config_option
@json_option
def statement(job: str | None, delta: str | None, config_path: Path, as_json: bool) -> None:
    """Print the guarantee of one JOB or of all, in Markdown: plain words first, then each exactly.

    Plain words say who is protected, from what, how much over a batch, a week and for ever, and
    what is not promised: how often a guess whether one is among the data may be right, of two
    answers that are as likely.

    Every figure is of the ledger. Figures with a delta are the best of several valid bounds, and
    are reports: the caps in force are what the ledger keeps. A ledger that is not the newest, by
    its anchor, states nothing.
    """
    from streamdp.reports import statement as reports
    from streamdp.store.anchor import require_same_end
    from streamdp.store.migrations import open_to_read

    configuration = load_configuration(config_path)
    if job is not None:
        require_job(configuration, job)
    store, anchor = configuration.store.paths()
    database = open_to_read(store)
    require_same_end(database, anchor)
    names = [job] if job else list(configuration.releases)
    at = _delta(delta) if delta else reports.common_delta(configuration, database, names)
    whole = reports.statement(configuration, database, names, at)
    click.echo(json.dumps(whole) if as_json else "\n".join(reports.markdown(whole)))


def _delta(text: str) -> Fraction:
    try:
        delta = exact(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--delta") from None
    if not 0 < delta < 1:
        raise click.BadParameter("it must lie between 0 and 1", param_hint="--delta")
    return delta
