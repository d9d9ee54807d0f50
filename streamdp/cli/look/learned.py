"""`streamdp learned`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from streamdp.cli.options import (
    config_option,
    job_argument,
    json_option,
    load_configuration,
    require_job,
)
from streamdp.cli.output import print_rows


@click.command()
@job_argument
@click.argument("batch", required=False)
@config_option
@click.option("--group", help="Group of the release, as `a, b`. Default: the first.")
@click.option(
    "--last",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="Releases whose losses are shown.",
)
@json_option
def learned(
    job: str,
    batch: str | None,
    config_path: Path,
    group: str | None,
    last: int,
    as_json: bool,
) -> None:
    """Show what JOB has learned from its past releases; costs nothing.

    Without BATCH, what it knows of the batch that comes next: its beliefs and their weights, where
    the next cuts lie and why, the prior of each quantile, what public numbers of the batch do, and
    the losses of past releases. With BATCH, what it knew before that batch was released, beside its
    release.
    """
    from streamdp import wiring
    from streamdp.reports.releases.learned import learned as read
    from streamdp.store.schema.migrations import open_to_read

    configuration = load_configuration(config_path)
    require_job(configuration, job)
    database = open_to_read(configuration.store.path)
    kind = wiring.release_kind(configuration, job)
    found = read(configuration, database, kind, job, batch, group, last)
    if as_json:
        click.echo(json.dumps(asdict(found)))
        return
    of = f" of {found.part}" if found.part else ""
    releases = "1 release" if found.releases == 1 else f"{found.releases} releases"
    click.echo(f"{job}{of}, {found.batch}: learned from {releases}")
    for table in found.tables:
        click.echo(f"\n{table.title}\n{table.about}")
        print_rows(table.rows, "table")
    if len(found.parts) > 1:
        click.echo(f"\nother groups (--group): {'; '.join(found.parts)}")
