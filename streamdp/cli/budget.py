"""`streamdp budget`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import Form, local, print_rows
from streamdp.privacy.amounts import epsilon_text, exact, nano_up

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.store.reports import ScopeReport
    from streamdp.types import Json


@click.command()
@config_option
@click.option("--ledger", "whole", is_flag=True, help="Every row of the ledger.")
@json_option
def budget(config_path: Path, whole: bool, as_json: bool) -> None:
    """Show what was spent, what is left, and for how many releases it lasts.

    `worst batch` is the most that one record has lost, if its unit is in one batch only;
    `lifetime` is the most that a unit has lost that is in all of them.
    """
    from streamdp.store.database import connect_to_read
    from streamdp.store.reports import ledger_rows, scope_reports

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
        reports = scope_reports(database)
        print_rows([_row(configuration, report) for report in reports], form)


def _row(configuration: Configuration, report: ScopeReport) -> dict[str, Json]:
    from streamdp.config.gate_checks import price_of_gates

    source = configuration.sources.get(report.scope)
    growing = source is not None and source.is_growing()
    left = report.lifetime_cap_nano - report.lifetime_spent_nano
    price = sum(
        nano_up(exact(job.epsilon))
        for job in configuration.releases.values()
        if job.source == report.scope
    )
    gates = price_of_gates(configuration, report.scope)
    price += nano_up(gates) if gates else 0
    return {
        "scope": report.scope,
        "worst_batch": epsilon_text(
            report.lifetime_spent_nano if growing else report.worst_batch_nano
        ),
        "batch_cap": epsilon_text(report.batch_cap_nano),
        "lifetime": epsilon_text(report.lifetime_spent_nano),
        "lifetime_cap": epsilon_text(report.lifetime_cap_nano),
        "left": epsilon_text(left),
        "burnt": epsilon_text(report.burnt_nano),
        "batches_left": max(left, 0) // price if price else None,
    }
