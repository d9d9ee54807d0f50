"""`streamdp run`, and a round of work with progress on a terminal and a summary."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, load_configuration, own_store
from streamdp.cli.output import SAY_EVERY, progress_bar
from streamdp.cli.streams import print_error
from streamdp.errors import StreamdpError
from streamdp.text import require_name

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.database import Database
    from streamdp.engine.attempts import Outcomes, Task
    from streamdp.engine.runner import Progress
    from streamdp.types import Batch, Log


NOTHING_RELEASED = 4
"""Exit code of a round that released nothing, where that is called a failure."""


def one_round(
    configuration: Configuration,
    names: Sequence[str],
    only: Callable[[Batch], bool] | None = None,
    *,
    patient: bool = True,
) -> Outcomes:
    """Do one round of the named jobs, of the batches that `only` admits.

    Jobs whose last charges were burnt rest for a while if `patient`.
    SIGTERM and SIGINT end it after the running release.

    Raises:
        StreamdpError: The store is another's, damaged, or cannot be used.
    """
    from streamdp.daemon.runtime import SystemClock, runtime
    from streamdp.privacy.draws import OperatingSystemEntropy
    from streamdp.reports.holds import clock_errors

    log = configuration.log.start(console=False)
    stopped: list[int] = []
    with (
        _caught(stopped),
        _progress() as progress,
        runtime(
            configuration,
            OperatingSystemEntropy(),
            SystemClock(),
            log,
            lambda: bool(stopped),
            progress,
        ) as running,
    ):
        running.runner.patient = patient
        outcomes = running.runner.round([running.jobs[name] for name in names], only)
        outcomes.errors += _lost(configuration, running.store.database, names)
        running.watch(configuration, OperatingSystemEntropy(), SystemClock(), log)
        now = SystemClock().now()
        outcomes.errors += clock_errors(configuration, running.store.database, now, names)
        return outcomes


def _lost(
    configuration: Configuration, database: Database, names: Sequence[str]
) -> list[StreamdpError]:
    """Say of each source that it had files and has none."""
    from streamdp.planning.changes import require_files

    found: list[StreamdpError] = []
    for name in dict.fromkeys(map(configuration.source_of_task, names)):
        try:
            require_files(configuration, database, [name])
        except StreamdpError as error:
            found.append(error)
    return found


def finish(outcomes: Outcomes, *, require_release: bool = False) -> None:
    """Print what was done, and why something was not; exit with the fitting code.

    Args:
        outcomes: What was done.
        require_release: Whether nothing released is a failure.
    """
    parts = [f"{outcomes.released} released"]
    if outcomes.refused:
        parts.append(f"{outcomes.refused} refused by a cap")
    click.echo(", ".join(parts), err=True)
    for job in outcomes.paused:
        click.echo(f"{job} is paused; `streamdp resume {job}` goes on with it", err=True)
    for job in outcomes.resting:
        click.echo(
            f"{job} rests, since its last charges were burnt: `streamdp budget --ledger` shows"
            f" them, `streamdp release {job}` does not wait",
            err=True,
        )
    if outcomes.stopped:
        click.echo("stopped by a signal; the next run goes on from here", err=True)
    for message, code in {str(error): error.code for error in outcomes.errors}.items():
        print_error(code, message)
    codes = {error.exit_code for error in outcomes.errors} | {
        int(outcomes.stopped or bool(outcomes.resting))
    }
    ended = max(codes) or (3 if outcomes.refused else 0)
    if require_release and not outcomes.released and not ended:
        click.echo("nothing was due, which --require-release calls a failure", err=True)
        ended = NOTHING_RELEASED
    sys.exit(ended)


@contextmanager
def _caught(stopped: list[int]) -> Iterator[None]:
    """Note a first signal; a second one has its usual effect."""

    def note(number: int, frame: object) -> None:
        stopped.append(number)
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_DFL)

    before = [(each, signal.signal(each, note)) for each in (signal.SIGTERM, signal.SIGINT)]
    try:
        yield
    finally:
        for each, handler in before:
            signal.signal(each, handler)


LONG_WAIT = 10
"""Seconds of slots from which on a gate's backlog is announced."""


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar for each job on a terminal; in a pipe a line every few seconds."""
    if not sys.stderr.isatty():
        yield _lines(time.monotonic)
        return
    from rich.progress import TimeRemainingColumn

    bar = progress_bar(TimeRemainingColumn())
    tasks: dict[str, int] = {}

    def show(job: Task, done: int, total: int) -> None:
        if job.name not in tasks:
            tasks[job.name] = bar.add_task(job.name, total=total)
            _announce(job, total)
        if not _in_series(job, done, total):
            bar.update(tasks[job.name], completed=done, total=total)  # type: ignore[arg-type]

    with bar:
        yield show


def _lines(timer: Callable[[], float]) -> Progress:
    """Progress as lines, one every few seconds."""
    last, begun = timer(), set[str]()

    def show(job: Task, done: int, total: int) -> None:
        nonlocal last
        if job.name not in begun:
            begun.add(job.name)
            _announce(job, total)
        if timer() - last >= SAY_EVERY and not _in_series(job, done, total):
            last = timer()
            click.echo(f"{job.name}: {done} of {total} batches", err=True)

    return show


def _announce(job: Task, total: int) -> None:
    """Say how long a gate's backlog takes, if it says no to all of it."""
    from streamdp.engine.gate import seconds_of_series
    from streamdp.engine.runner import TURN_OF_A_GATE

    slot = getattr(job, "slot", 0)
    if not slot:
        return
    turns, rest = divmod(total, TURN_OF_A_GATE)
    seconds = turns * seconds_of_series(slot, TURN_OF_A_GATE)
    seconds += seconds_of_series(slot, rest) if rest else 0
    if seconds >= LONG_WAIT:
        minutes = f"{seconds / 60:.0f} minutes" if seconds > 90 else f"{seconds} s"
        said = f"{total} batches in slots of {slot} s, about {minutes} and {slot} s for each yes"
        click.echo(f"{job.name}: {said}", err=True)


def _in_series(job: Task, done: int, total: int) -> bool:
    """Whether a gate may be amid tests, whose times are not shown."""
    from streamdp.engine.runner import TURN_OF_A_GATE

    return bool(getattr(job, "slot", 0)) and done % TURN_OF_A_GATE > 0 and done != total


@click.command()
@config_option
@click.option(
    "--accept-clock", is_flag=True, help="Accept the clock as right, whichever way it jumped."
)
@click.option("--once", is_flag=True, help="Do what is due and exit: for cron, dbt or Airflow.")
@click.option("--source", help="With --once: only the jobs that read this source.")
@click.option(
    "--no-page",
    is_flag=True,
    help="Leave the page to a `streamdp web` elsewhere, as in containers.",
)
@click.option(
    "--require-release",
    is_flag=True,
    help="With --once: exit with 4 if nothing was released and nothing failed.",
)
def run(
    config_path: Path,
    once: bool,
    source: str | None,
    accept_clock: bool,
    require_release: bool,
    no_page: bool,
) -> None:
    """Release what is due, now and on schedule, until SIGTERM; SIGHUP loads the configuration anew.

    With --once: release everything that is due, of all jobs or those of one source, and exit. A
    source that had batches and finds no file now is a failure, exit code 1.
    """
    configuration = load_configuration(config_path)
    if accept_clock:
        _accept_clock(configuration)
    if once:
        outcomes = one_round(configuration, _jobs(configuration, source))
        finish(outcomes, require_release=require_release)
        return
    if require_release:
        raise click.UsageError("--require-release goes with --once: the daemon goes on")
    if source is not None:
        raise click.UsageError("--source goes with --once: the daemon does all jobs")
    from streamdp.cli.web import beside
    from streamdp.daemon.daemon import Daemon
    from streamdp.daemon.runtime import SystemClock
    from streamdp.privacy.draws import OperatingSystemEntropy

    def log(configuration: Configuration) -> Log:
        return configuration.log.start(console=True)

    with nullcontext() if no_page else beside(configuration, config_path):
        Daemon(config_path, configuration, OperatingSystemEntropy(), SystemClock(), log).run()


def _jobs(configuration: Configuration, source: str | None) -> list[str]:
    """All jobs, or those of one source."""
    if source is not None:
        require_name(source, configuration.sources, "source")
    of = configuration.source_of_task
    return [name for name in configuration.tasks() if source in (None, of(name))]


def _accept_clock(configuration: Configuration) -> None:
    """Write into the ledger that someone has looked at the clock."""
    from streamdp.cli.budget import who

    now = int(time.time())
    with own_store(configuration, now) as store:
        store.accept_time(now, who())
