"""Naming a job or a source on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from streamdp.cli.options import DEFAULT_PATH, load_configuration
from streamdp.errors import StreamdpError
from streamdp.planning.names import require_name

if TYPE_CHECKING:
    from streamdp.config import Configuration


def complete_job(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Jobs of the configuration that a shell offers; none if it cannot be used."""
    try:
        configuration = load_configuration(context.params.get("config_path") or DEFAULT_PATH)
    except StreamdpError:
        return []
    return [name for name in configuration.releases if name.startswith(begun)]


job_argument = click.argument("job", shell_complete=complete_job)


def require_job(configuration: Configuration, job: str) -> None:
    """Refuse a job that is not configured.

    Raises:
        ConfigurationError: With the nearest name.
    """
    require_name(job, configuration.releases, "release")
