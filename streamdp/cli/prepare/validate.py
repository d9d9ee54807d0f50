"""`streamdp validate`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import local, print_rows
from streamdp.types import Json


@click.command()
@config_option
@json_option
def validate(config_path: Path, as_json: bool) -> None:
    """Check the configuration without touching data or store; show the next five times of each job.

    Times are UTC.
    """
    from streamdp import wiring
    from streamdp.config import next_times

    configuration = load_configuration(config_path)
    rows: list[dict[str, Json]] = []
    wiring.tasks(configuration)
    for name in configuration.tasks():
        times = next_times(configuration.schedule_of(name), int(time.time()), 5)
        row: dict[str, Json] = {"job": name, "protects": str(configuration.privacy.unit)}
        row |= {f"wake_{index}": local(moment) for index, moment in enumerate(times, start=1)}
        rows.append(row)
    if not as_json:
        click.echo(f"{config_path} is valid", err=True)
    print_rows(rows, "json" if as_json else "table", "wakes at (UTC)")
