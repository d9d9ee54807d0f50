"""`streamdp release`, `pause`, `resume` and `rearm`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import (
    config_option,
    job_argument,
    load_configuration,
    moment,
    require_job,
    store_beside,
)
from streamdp.cli.run import finish, one_round
from streamdp.errors import ConfigurationError, StreamdpError
from streamdp.privacy.amounts import epsilon_text, nano_up
from streamdp.privacy.price import price_text
from streamdp.text import require_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamdp.config import Configuration
    from streamdp.types import Batch


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
    from streamdp.store.migrations import open_to_read
    from streamdp.store.reading.reports import standing_for

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


@click.command()
@job_argument
@click.option("--from", "since", callback=moment, required=True, help="First day (ISO, UTC).")
@click.option("--to", "until", callback=moment, required=True, help="Day after the last (ISO).")
@click.option("--yes", is_flag=True, help="Do not ask.")
@config_option
def backfill(job: str, since: int, until: int, yes: bool, config_path: Path) -> None:
    """Release the windows of JOB between two times that were not released, and say the cost first.

    A window that was released keeps its release: it is listed, never computed again.
    """
    configuration = load_configuration(config_path)
    require_job(configuration, job)
    _require_windows(configuration, job)
    if since >= until:
        raise click.BadParameter("it is not after --from", param_hint="'--to'")

    def wanted(batch: Batch) -> bool:
        return (
            batch.start is not None
            and batch.end is not None
            and batch.start >= since
            and batch.end <= until
        )

    known, new = _split(configuration, job, wanted)
    price = configuration.releases[job].price
    click.echo(
        f"{job}: {len(known) + len(new)} windows, {len(known)} already released,"
        f" {len(new)} to release at {price_text(price)} each"
        f" = {price_text(price, len(new))} in all"
    )
    for batch in known:
        click.echo(f"{batch.key} stands: `streamdp show {job} {batch.key}`")
    if not new:
        return
    if not yes:
        click.confirm("Spend it?", abort=True)
    finish(one_round(configuration, [job], wanted))


def _require_windows(configuration: Configuration, job: str) -> None:
    """Refuse a job whose batches are files, or whose gate decides which are released.

    Raises:
        ConfigurationError: It is one of these.
    """
    from streamdp.sources.windows import Windows

    if job in configuration.gated():
        raise ConfigurationError(
            f"the gate of {job} decides which batches it releases",
            where=f"gates.{configuration.gated()[job]}",
            hint=f"`streamdp release {job}` asks it about what is due",
        )
    if not isinstance(configuration.source_section(job).batches, Windows):
        raise ConfigurationError(
            f"the batches of {job} are files, which have no times",
            where=f"sources.{configuration.releases[job].source}",
            hint=f"`streamdp release {job} --batch NAME` releases one of them",
        )


def _split(
    configuration: Configuration, job: str, wanted: Callable[[Batch], bool]
) -> tuple[list[Batch], list[Batch]]:
    """Windows that were released, and windows that were not."""
    from streamdp.store.archive import released_batches
    from streamdp.store.migrations import open_to_read
    from streamdp.types import due_together

    name = configuration.releases[job].source
    source = configuration.sources[name].source(name)
    batches = [batch for batch in source.batches(int(time.time())) if wanted(batch)]
    path = configuration.store.path
    done = released_batches(open_to_read(path), job, name) if path.exists() else frozenset()
    known = [batch for batch in batches if batch.key in done]
    together = configuration.releases[job].asked_together
    return known, due_together(batches, done, together)


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
    from streamdp.store.problems import pause_job, resume_job
    from streamdp.store.verified_open import require_store

    configuration = load_configuration(config_path)
    require_name(job, configuration.tasks(), "release")
    now = int(time.time())
    require_store(*configuration.store.paths())
    database = store_beside(configuration, now, create=True)
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
    from streamdp.store.database import transaction
    from streamdp.store.gates import rearm as arm

    configuration = load_configuration(config_path)
    require_name(gate, configuration.all_gates(), "gate")
    database = store_beside(configuration, int(time.time()))
    if not yes:
        price = epsilon_text(nano_up(configuration.all_gates()[gate].epsilon))
        click.confirm(f"A run of {gate} costs {price}. Spend it?", abort=True)
    with transaction(database):
        waited = arm(database, gate)
    if not waited:
        raise StreamdpError(f"{gate} does not wait", hint="`streamdp status` shows where it stands")
    click.echo(f"{gate} will be armed")
