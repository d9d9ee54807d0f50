"""`streamdp web`, and the page beside a daemon."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, load_configuration
from streamdp.errors import ConfigurationError

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.types import Column, ReleaseKind

NEEDED = ("starlette", "uvicorn", "jinja2", "prometheus_client")


@click.command()
@config_option
@click.option("--until-eof", is_flag=True, hidden=True, help="End with standard input.")
def web(config_path: Path, until_eof: bool) -> None:
    """Serve a read-only page over the store: releases, budget, statement, log, API, metrics.

    On http://127.0.0.1:8765 unless `web.listen` says otherwise. It works beside a daemon and
    without one, and cannot write: not to the store, and not to what sources read.
    """
    configuration = load_configuration(config_path)
    require_extra()
    from streamdp.web.app import serve

    if not until_eof:
        section = configuration.web
        click.echo(f"http://{section.listen if section else '127.0.0.1:8765'}/", err=True)
    serve(config_path.absolute(), configuration, kind_of, until_eof=until_eof)


def kind_of(configuration: Configuration, job: str) -> ReleaseKind:
    """Kind of a job."""
    from streamdp import wiring

    return wiring.release_kind(configuration, job)


def columns_of(configuration: Configuration, job: str) -> Sequence[Column]:
    """Columns that the kind of a job declares."""
    return kind_of(configuration, job).columns


def require_extra() -> None:
    """Raise an error if the extra is not installed.

    Raises:
        ConfigurationError: With how to install it.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"this needs {', '.join(missing)}", hint="pip install 'streamdp[web]'"
        )


@contextmanager
def beside(configuration: Configuration, path: Path) -> Iterator[None]:
    """Run the page in a process of its own while the block lasts, if it is configured.

    Its process holds no private counts and yields to the daemon's; it ends when the daemon does,
    however that ends, for the pipe between them ends too.

    Raises:
        ConfigurationError: The extra is not installed.
    """
    if configuration.web is None:
        yield
        return
    require_extra()
    command = ["nice", sys.executable, "-m", "streamdp", "web", "-c", str(path), "--until-eof"]
    page = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield
    finally:
        page.terminate()
        page.wait(timeout=10)
