"""Naming a job and its batches on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from streamdp.cli.options import DEFAULT_PATH, load_configuration
from streamdp.errors import StreamdpError
from streamdp.planning.names import require_name

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.database import Database
    from streamdp.types import Release


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


def require_release(database: Database, job: str, batch: str) -> Release:
    """The release of a batch.

    Raises:
        StreamdpError: There is none.
    """
    from streamdp.store.archive import find_release

    release = find_release(database, job, batch)
    if release is None:
        raise StreamdpError(
            f"{job} has no release of {batch!r}",
            hint="`streamdp releases` lists the batches that were released",
        )
    return release
