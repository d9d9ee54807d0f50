"""A round of work from the command line: progress on a terminal, and a word at the end."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from streamdp.text import printable

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.engine.work import Outcomes, Progress, Task
    from streamdp.types import Batch


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
    from streamdp.daemon.clock import SystemClock
    from streamdp.daemon.runtime import runtime
    from streamdp.privacy.entropy import OperatingSystemEntropy
    from streamdp.wiring import start_log

    log = start_log(configuration, console=False)
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
        running.worker.patient = patient
        outcomes = running.worker.round([running.jobs[name] for name in names], only)
        running.watch(configuration, OperatingSystemEntropy(), SystemClock(), log)
        return outcomes


def finish(outcomes: Outcomes) -> None:
    """Say what was done, and why something was not; exit with the code that fits."""
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
        click.secho(f"error ({code}): ", fg="red", bold=True, nl=False, err=True)
        click.echo(printable(message), err=True)
    codes = {error.exit_code for error in outcomes.errors} | {
        int(outcomes.stopped or bool(outcomes.resting))
    }
    sys.exit(max(codes) or (3 if outcomes.refused else 0))


@contextmanager
def _caught(stopped: list[int]) -> Iterator[None]:
    """Note a first signal; a second one acts as it always does."""

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


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar for each job on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda job, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Remaining(),
        console=Console(stderr=True),
    )
    tasks: dict[str, int] = {}

    def show(job: Task, done: int, total: int) -> None:
        if job.name not in tasks:
            tasks[job.name] = bar.add_task(job.name, total=total)
        bar.update(tasks[job.name], completed=done, total=total)  # type: ignore[arg-type]

    with bar:
        yield show
