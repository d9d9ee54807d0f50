"""Options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from streamdp.errors import StreamdpError
from streamdp.text import require_name

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.database import Database
    from streamdp.types import Release


DEFAULT_PATH = Path("config.yaml")

config_option = click.option(
    "-c",
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=DEFAULT_PATH,
    envvar="STREAMDP_CONFIG",
    show_default=True,
    show_envvar=True,
    help="The configuration.",
)
operator_option = click.option(
    "--operator", required=True, help="Who decides; it stays in the ledger for ever."
)
reason_option = click.option("--reason", required=True, help="Why; it stays there too.")
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")


def load_configuration(path: Path) -> Configuration:
    """The configuration at a path, checked.

    Raises:
        ConfigurationError: It cannot be used.
    """
    from streamdp.config import load

    return load(path)


def moment(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """Callback for options that take an ISO date or time, UTC if it names no zone."""
    from datetime import UTC, datetime

    from streamdp.text import YEARS

    if text is None:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no ISO date like 2013-06-01") from None
    if parsed.year not in YEARS:
        raise click.BadParameter(f"{text!r} is not of the years {YEARS[0]} to {YEARS[-1]}")
    return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp())


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


HELP = """Print the completion script of a shell.

\b
bash:  eval "$(streamdp completion bash)"
zsh:   eval "$(streamdp completion zsh)"
fish:  streamdp completion fish | source
"""


@click.command(help=HELP)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    root = click.get_current_context().find_root().command
    click.echo(kind(root, {}, "streamdp", "_STREAMDP_COMPLETE").source())
