"""`streamdp run`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, load_configuration
from streamdp.cli.work.run_once import finish, one_round
from streamdp.planning.names import require_name

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.types import Log


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
    from streamdp.cli.look.web import beside
    from streamdp.daemon.daemon import Daemon
    from streamdp.daemon.runtime import SystemClock
    from streamdp.privacy.entropy import OperatingSystemEntropy

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
    import time

    from streamdp.cli.ledger.cap import who
    from streamdp.daemon.lock import store_lock
    from streamdp.store.sqlite import SqliteStore

    path, anchor = configuration.store.paths()
    now = int(time.time())
    with store_lock(path):
        store = SqliteStore.open(path, now, anchor)
        store.accept_time(now, who())
        store.close()
