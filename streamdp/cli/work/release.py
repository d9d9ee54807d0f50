"""`streamdp release`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.jobs import job_argument, require_job
from streamdp.cli.options import config_option, load_configuration
from streamdp.cli.work.run_once import finish, one_round
from streamdp.errors import StreamdpError

if TYPE_CHECKING:
    from streamdp.config import Configuration


@click.command()
@job_argument
@click.option("--batch", help="Only this batch, by its key.")
@config_option
def release(job: str, batch: str | None, config_path: Path) -> None:
    """Release what is due of JOB now, without waiting for its schedule or a rest.

    A batch that was released is never released again: `streamdp show` shows it.
    """
    from streamdp.engine.attempts import Outcomes

    configuration = load_configuration(config_path)
    require_job(configuration, job)
    only = None if batch is None else lambda found: found.key == batch
    outcomes = one_round(configuration, [job], only, patient=False)
    if batch is not None and outcomes == Outcomes():
        _say_why_not(configuration, job, batch)
    finish(outcomes)


def _say_why_not(configuration: Configuration, job: str, batch: str) -> None:
    """Print why a batch that was named is not due: released before, or not there.

    Raises:
        StreamdpError: There is no such batch.
    """
    from streamdp.store.archive import find_release
    from streamdp.store.reading.gate_reports import standing_for
    from streamdp.store.schema.schema import open_to_read

    database = open_to_read(configuration.store.path)
    stands = standing_for(database, job, batch, int(time.time()))
    if stands is not None:
        click.echo(f"the gate let the release of {stands} stand for {batch}", err=True)
        return
    if find_release(database, job, batch) is None:
        raise StreamdpError(
            f"{job} has no complete batch {batch!r}",
            where=f"sources.{configuration.releases[job].source}",
            hint="a window has the name of its start, and is complete after its end and lateness;"
            " a file that of its path",
        )
    click.echo(f"{batch} was released before: `streamdp show {job} {batch}`", err=True)
