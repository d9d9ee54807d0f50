"""`streamdp run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, load_configuration
from streamdp.cli.rounds import finish, one_round

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.types import Log


@click.command()
@config_option
@click.option("--once", is_flag=True, help="Do what is due and exit: for cron, dbt or Airflow.")
def run(config_path: Path, once: bool) -> None:
    """Release what is due, now and on schedule, until SIGTERM; SIGHUP loads the configuration anew.

    With --once: release everything that is due, of all jobs, and exit.
    """
    configuration = load_configuration(config_path)
    if once:
        finish(one_round(configuration, configuration.tasks()))
        return
    from streamdp.daemon.clock import SystemClock
    from streamdp.daemon.daemon import Daemon
    from streamdp.privacy.entropy import OperatingSystemEntropy
    from streamdp.wiring import start_log

    def log(configuration: Configuration) -> Log:
        return start_log(configuration, console=True)

    Daemon(config_path, configuration, OperatingSystemEntropy(), SystemClock(), log).run()
