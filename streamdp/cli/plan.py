"""`streamdp plan`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import Amount, Form, print_rows
from streamdp.errors import BudgetExhaustedError
from streamdp.planning.accuracy import Simulations, bounds_of, rows_of_bounds
from streamdp.planning.changes import changes
from streamdp.planning.costs import (
    Listing,
    Prices,
    RefusedBatch,
    Waiting,
    copy_with_caps,
    gate_row,
    listing,
    open_tests,
    refusals,
    waiting_until,
)
from streamdp.privacy.amounts import atto_up
from streamdp.text import require_name

DAY = 86_400

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.database import Database
    from streamdp.privacy.filters import Caps
    from streamdp.types import Batch, Json


@click.command()
@click.argument("jobs", nargs=-1)
@click.option(
    "--days",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="How many days ahead are planned.",
)
@click.option(
    "--error",
    "--rank-error",
    "wanted",
    type=click.FloatRange(0, min_open=True),
    help="Also show the epsilon (or rho) with which releases have this error: the first figure"
    " that is shown, such as the share of ranks, or records of a count.",
)
@click.option(
    "--value-error",
    "in_unit",
    type=click.FloatRange(0, min_open=True),
    help="Also show, for every measure, the epsilon (or rho) with which it has this error in its"
    " own unit: records of a count, euros or minutes of a mean or quantile.",
)
@click.option(
    "--rows",
    "bounds",
    help="Also show what each of some bounds on the records of a unit costs, such as 1,2,3,5: the"
    " noise at each, and the share of records that it leaves out where a release has told it.",
)
@config_option
@json_option
def plan(
    jobs: tuple[str, ...],
    days: int,
    wanted: float | None,
    in_unit: float | None,
    bounds: str | None,
    config_path: Path,
    as_json: bool,
) -> None:
    """Show what will be spent in the next days, and what a cap would refuse; touches no data.

    Counts the windows that are due already and those that will end; of batches that are files,
    only those already there. Exits with 3 if a cap would refuse one;
    `frees` says when it has room for as much in a later batch.

    Compared with the store: a job that publishes anew what a job of another name has published
    already is told on stderr, with its price, and so is another question under the same name.

    Where a release has expected_rows, `rank error 95` is the share of ranks that 95 % of first
    releases stay within, simulated from the prior; later ones have learned. `rank error bound 95`
    is what they stay within by the founding paper's bound, and `prior loss nats` is what the bound
    rests on: 0 for a prior that knows the quantiles. With JOBS only these releases are shown, and
    the budget of all. Of more than twenty only JOBS are simulated.
    """
    from streamdp.wiring import require_same_data

    configuration = load_configuration(config_path)
    database, now = _store(configuration), int(time.time())
    for job in jobs:
        require_name(job, configuration.releases, "release")
    if database is not None:
        require_same_data(configuration, database)
    batches, until = listing(configuration), now + days * DAY
    prices = Prices(configuration)
    copy = copy_with_caps(configuration, database, batches, now)
    waiting = waiting_until(configuration, database, copy, batches, until)
    if database is not None:
        for said in changes(configuration, database, prices, waiting.by_task()):
            click.echo(said, err=True)
    form: Form = "json" if as_json else "table"
    shown = [name for name in waiting.releases if not jobs or name in jobs]
    errors, left = Simulations(configuration, prices, database, wanted, in_unit).foretell(
        shown, named=bool(jobs), progress=_progress
    )
    rows = [
        _job_row(configuration, prices, name, waiting.releases[name], batches, now) | errors[name]
        for name in shown
    ]
    print_rows(rows, form, f"releases of the next {days} days")
    if not as_json and any(row.get("rank_error_95") is not None for row in rows):
        click.echo(
            "errors are those of a first release, whose prior has learned nothing; those of later"
            " ones are their intervals: `streamdp releases`",
            err=True,
        )
    _tell_of_left_out(left)
    if bounds is not None:
        of_bounds = rows_of_bounds(configuration, database, shown, bounds_of(bounds))
        print_rows(list(of_bounds), form, "bounds on the records of a unit")
    if waiting.gates:
        rows = [gate_row(configuration, database, *each) for each in waiting.gates.items()]
        print_rows(rows, form, f"gates in the next {days} days")
    if _print_budget(configuration, prices, database, copy, waiting, form, now, until):
        click.get_current_context().exit(BudgetExhaustedError.exit_code)


def _tell_of_left_out(left: int) -> None:
    """Say how many releases were not simulated, if any."""
    if left:
        click.echo(
            f"the errors of {left} releases are not simulated, it takes a second or so for each"
            " that differs: `streamdp plan JOB` does it for those that are named",
            err=True,
        )


def _print_budget(
    configuration: Configuration,
    prices: Prices,
    database: Database | None,
    copy: Database,
    waiting: Waiting,
    form: Form,
    now: int,
    until: int,
) -> bool:
    """Print the refusals of caps, and the budget after all charges; whether there was a refusal."""
    from streamdp.store.ledger.chain import spent_of
    from streamdp.store.ledger.ledger import caps_of

    scopes = {configuration.releases[name].source for name in waiting.releases}
    scopes |= {configuration.source_of(gate) for gate in configuration.all_gates().values()}
    before = {
        scope: (
            spent_of(copy, scope, caps_of(copy, scope).measure),
            spent_of(copy, scope, "delta"),
        )
        for scope in sorted(scopes)
    }
    opened = open_tests(configuration, database)
    refused = list(refusals(configuration, prices, copy, waiting.by_task(), opened, now))
    if refused:
        print_rows([each.row() for each in refused], form, "refused by a cap")
    rows = [
        _budget_row(copy, scope, spent, refused) | _lasts(configuration, copy, scope, until)
        for scope, spent in before.items()
    ]
    print_rows(rows, form, "budget")
    return bool(refused)


def _lasts(configuration: Configuration, copy: Database, scope: str, until: int) -> dict[str, Json]:
    """How many more batches the lifetime cap has room for afterwards, and which is the last."""
    from streamdp.reports.budget import LAST_MOMENT, prices_of_batch, purse_of, sum_of
    from streamdp.reports.releases.sentences import day_of
    from streamdp.sources.windows import Windows

    purse = purse_of(copy, scope)
    all_ = sum_of(prices_of_batch(configuration, copy, scope).values())
    if purse is None or not all_.amount(purse.measure):
        return {}
    left = purse.lasts(all_)
    cut = configuration.sources[scope].batches
    row: dict[str, Json] = {"batches_left_after": left}
    if left is not None and isinstance(cut, Windows):
        over = until - cut.lateness if cut.end is None else min(until - cut.lateness, cut.end)
        planned = max((over - cut.start) // cut.every, 0)
        last = cut.start + (planned + left - 1) * cut.every
        if cut.end is not None and last >= cut.end:
            row["lasts_until"] = "the source ends before"
        else:
            row["lasts_until"] = day_of(last) if last < LAST_MOMENT else "after 2100"
    return row


def _store(configuration: Configuration) -> Database | None:
    from streamdp.store.migrations import open_to_read

    path = configuration.store.path
    return open_to_read(path) if path.exists() else None


def _progress(jobs: list[str]) -> AbstractContextManager[Iterable[str]]:
    """A bar on a terminal."""
    shown = sys.stderr.isatty() and len(jobs) > 1
    bar = click.progressbar(jobs, label="expected errors", file=sys.stderr, hidden=not shown)
    return cast("AbstractContextManager[Iterable[str]]", bar)


def _job_row(
    configuration: Configuration,
    prices: Prices,
    job: str,
    windows: list[Batch],
    batches: Listing,
    now: int,
) -> dict[str, Json]:
    ended = {batch.key for batch in batches(configuration.releases[job].source, now)}
    due = sum(window.key in ended for window in windows)
    price, rho = configuration.releases[job].price, _rho_each(configuration, prices, job, windows)
    return {
        "job": job,
        "protects": configuration.privacy.unit.protects(),
        "due_now": due,
        "later": len(windows) - due,
        "first": windows[0].key if windows else None,
        "last": windows[-1].key if windows else None,
        f"{price.measure}_each": Amount.of(price.nano),
        f"{price.measure}_in_all": Amount.of(price.nano * len(windows)),
        **({} if rho is None else {"rho_each": Amount.of(rho)}),
        **({"delta_each": Amount.of(atto_up(price.delta), "delta")} if price.delta else {}),
    }


def _rho_each(
    configuration: Configuration, prices: Prices, job: str, windows: list[Batch]
) -> int | None:
    """Price of a release under caps in rho, in nano units; None under others."""
    if configuration.privacy.caps.measure != "rho" or not windows:
        return None
    return prices.charge(job, windows[0]).rho_nano


def _budget_row(
    copy: Database, scope: str, before: tuple[int, int], refused: list[RefusedBatch]
) -> dict[str, Json]:
    """Spent, planned and left of one scope, and the window at which the lifetime cap ends it.

    Of gates what they cost at least is planned: what they let through is not to be known.
    """
    from streamdp.store.ledger.chain import spent_of
    from streamdp.store.ledger.ledger import caps_of

    (spent, delta), caps = before, caps_of(copy, scope)
    cap, total = caps.lifetime_nano, spent_of(copy, scope, caps.measure)
    ends = (each.batch for each in refused if each.is_the_end and each.batch.source == scope)
    end = next(ends, None)
    return {
        "scope": scope,
        **({} if caps.measure == "epsilon" else {"measure": caps.measure}),
        "spent": Amount.of(spent),
        "planned": Amount.of(total - spent),
        "lifetime_cap": Amount.of(cap),
        "left_after": Amount.of(max(cap - total, 0)),
        "cap_reached_at": end.key if end else "not reached",
        **_of_delta(copy, scope, caps, delta),
    }


def _of_delta(copy: Database, scope: str, caps: Caps, before: int) -> dict[str, Json]:
    """Delta that was spent, is planned and is left over the lifetime, where caps have one."""
    from streamdp.store.ledger.chain import spent_of

    cap = min(limit.nano for limit in caps.deltas if limit.lifetime)
    if not cap:
        return {}
    total = spent_of(copy, scope, "delta")
    return {
        "delta_spent": Amount.of(before, "delta"),
        "delta_planned": Amount.of(total - before, "delta"),
        "delta_left_after": Amount.of(max(cap - total, 0), "delta"),
    }
