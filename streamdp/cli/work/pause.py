"""`streamdp pause` and `streamdp resume`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from streamdp.cli.options import config_option, job_argument, load_configuration
from streamdp.errors import StreamdpError
from streamdp.privacy.amounts import epsilon_text, nano_up
from streamdp.text import require_name


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
    from streamdp.store.problems import pause_job, resume_job
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


@click.command()
@click.argument("gate")
@click.option("--yes", is_flag=True, help="Do not ask.")
@config_option
def rearm(gate: str, yes: bool, config_path: Path) -> None:
    """Let GATE, which waits after an acceptance, begin another run.

    The run is charged in full before its first test; a daemon asks about what is due within
    seconds of its next wake, in order.
    """
    from streamdp.store.database import connect, transaction
    from streamdp.store.gates import rearm as arm
    from streamdp.store.schema.migrations import migrate

    configuration = load_configuration(config_path)
    require_name(gate, configuration.all_gates(), "gate")
    database = connect(configuration.store.path, create=False)
    migrate(database, int(time.time()))
    if not yes:
        price = epsilon_text(nano_up(configuration.all_gates()[gate].epsilon))
        click.confirm(f"A run of {gate} costs {price}. Spend it?", abort=True)
    with transaction(database):
        waited = arm(database, gate)
    if not waited:
        raise StreamdpError(f"{gate} does not wait", hint="`streamdp status` shows where it stands")
    click.echo(f"{gate} will be armed")
