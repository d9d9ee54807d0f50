"""`streamdp statement`."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import click

from streamdp.cli.options import (
    complete_job,
    config_option,
    json_option,
    load_configuration,
    require_job,
)
from streamdp.privacy.amounts import exact


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
    from streamdp.reports.guarantee import statement as reports
    from streamdp.store.anchor.check import require_same_end
    from streamdp.store.schema.migrations import open_to_read

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
