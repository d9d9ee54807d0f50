"""`streamdp release`."""

from __future__ import annotations

from pathlib import Path

import click

from streamdp.cli.jobs import require_job
from streamdp.cli.options import config_option, load_configuration
from streamdp.cli.rounds import finish, one_round


@click.command()
@click.argument("job")
@click.option("--batch", help="Only this batch, by its key.")
@config_option
def release(job: str, batch: str | None, config_path: Path) -> None:
    """Release what is due of JOB now, without waiting for its schedule.

    A batch that was released is never released again: `streamdp show` shows it.
    """
    configuration = load_configuration(config_path)
    require_job(configuration, job)
    only = None if batch is None else lambda found: found.key == batch
    finish(one_round(configuration, [job], only))
