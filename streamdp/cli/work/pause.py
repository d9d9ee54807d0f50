"""`streamdp pause` and `streamdp resume`."""

from __future__ import annotations

from pathlib import Path

import click

from streamdp.cli.jobs import job_argument
from streamdp.cli.options import config_option, load_configuration
from streamdp.planning.names import require_name


@click.command()
@job_argument
@config_option
def pause(job: str, config_path: Path) -> None:
    """Stop releasing JOB until it is resumed; a restart changes nothing about it."""
    _set(config_path, job, paused=True)


@click.command()
@job_argument
@config_option
def resume(job: str, config_path: Path) -> None:
    """Go on with JOB; what became due meanwhile is caught up in order."""
    _set(config_path, job, paused=False)


def _set(config_path: Path, job: str, *, paused: bool) -> None:
    """Pause or resume in the store; a running daemon reads it every round."""
    import time

    from streamdp.store.database import connect
    from streamdp.store.pauses import pause_job, resume_job
    from streamdp.store.schema.migrations import migrate
    from streamdp.store.verified_open import require_store

    configuration = load_configuration(config_path)
    require_name(job, configuration.tasks(), "release")
    now = int(time.time())
    require_store(*configuration.store.paths())
    database = connect(configuration.store.path)
    migrate(database, now)
    if paused:
        pause_job(database, job, now)
    else:
        resume_job(database, job)
    click.echo(f"{job} is {'paused' if paused else 'running'}")
