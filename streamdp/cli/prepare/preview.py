"""`streamdp preview`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import print_rows
from streamdp.text import require_name


@click.command()
@click.argument("source")
@click.option(
    "--rows", "first", type=click.IntRange(0, 1000), default=5, show_default=True, help="To show."
)
@click.option(
    "--truth-may-be-seen",
    is_flag=True,
    help="You may see these records: what is shown is not private.",
)
@config_option
@json_option
def preview(
    source: str, first: int, truth_may_be_seen: bool, config_path: Path, as_json: bool
) -> None:
    """Show records of SOURCE as they are parsed, for somebody who may see them; spends nothing.

    Shows the first rows; of each column its type and the share of values that are missing or became
    null because they are none of that type, with three of them; records a batch and batches without
    any; records of a unit in a batch, with the share that each `rows` of the unit would keep; and
    groups of releases that are not listed.

    It reads the records themselves: what it prints is true, not private, and no figure of it may be
    published. Nothing of it is written to the store or the log. Choose bounds, groups and `rows` by
    what is known without the data where the choice itself would tell something.
    """
    from streamdp.errors import ConfigurationError
    from streamdp.planning.preview import preview as look

    configuration = load_configuration(config_path)
    require_name(source, configuration.sources, "source")
    if not truth_may_be_seen:
        raise ConfigurationError(
            f"a preview shows records of {source} as they are",
            where=f"sources.{source}",
            hint="add --truth-may-be-seen if you may see them; `streamdp doctor` looks at columns"
            " and types alone",
        )
    found = look(configuration, source, first, int(time.time()))
    titles = {
        f"first rows of {source}": found.rows,
        "columns": found.columns,
        "records a batch": found.batches,
        "records of a unit in a batch, and the share that `rows` keeps": found.units,
        "groups that are not listed": found.groups,
    }
    for title, rows in titles.items():
        if rows:
            print_rows(rows, "json" if as_json else "table", f"{title} (not private)")
    for said in found.warnings:
        click.echo(said, err=True)
