"""Options that commands share, and the commands about streamdp itself."""

from __future__ import annotations

import platform
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from streamdp.cli.output import print_rows
from streamdp.errors import StreamdpError
from streamdp.text import require_name
from streamdp.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamdp.config import Configuration
    from streamdp.database import Database
    from streamdp.store.sqlite import SqliteStore


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


@contextmanager
def own_store(configuration: Configuration, now: int) -> Iterator[SqliteStore]:
    """The store, open for this process alone.

    Raises:
        LockedError: Another process works on it.
    """
    from streamdp.daemon.lock import store_lock
    from streamdp.store.sqlite import SqliteStore

    path, anchor = configuration.store.paths()
    with store_lock(path), closing(SqliteStore.open(path, now, anchor)) as store:
        yield store


def store_beside(configuration: Configuration, now: int, *, create: bool = False) -> Database:
    """The store, brought up to date, for a statement or two beside a daemon."""
    from streamdp.store.database import connect
    from streamdp.store.migrations import migrate

    database = connect(configuration.store.path, create=create)
    migrate(database, now)
    return database


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


def version_line() -> str:
    """Text of `streamdp --version`: the version, and the commit where it is known."""
    known = commit()
    return f"{__version__} ({known})" if known else __version__


def commit() -> str:
    """The commit that was built, or that is checked out; empty where nothing tells."""
    import subprocess
    from pathlib import Path

    package = Path(__file__).parents[1]
    baked = package / "commit.txt"
    if baked.is_file():
        return baked.read_text(encoding="utf-8").strip()
    if not (package.parent / ".git").exists():
        return ""
    git = ["git", "--no-optional-locks", "-C", str(package.parent)]
    describe = [*git, "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
    try:
        told = subprocess.run(describe, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return told.stdout.strip()


@click.command()
@json_option
def version(as_json: bool) -> None:
    """Print the versions a bug report needs."""
    import sqlite3
    from importlib.metadata import version as installed

    rows = [
        {"what": "streamdp", "version": __version__},
        {"what": "commit", "version": commit() or "unknown"},
        {"what": "python", "version": platform.python_version()},
        {"what": "sqlite", "version": sqlite3.sqlite_version},
        *(
            {"what": name, "version": installed(name)}
            for name in ("duckdb", "numpy", "apscheduler", "sqlite-utils")
        ),
    ]
    print_rows(rows, "json" if as_json else "table")
