"""`streamdp version`."""

from __future__ import annotations

import platform

import click

from streamdp import __version__
from streamdp.cli.options import json_option
from streamdp.cli.output import print_rows


@click.command()
@json_option
def version(as_json: bool) -> None:
    """Print the versions a bug report needs."""
    import sqlite3
    from importlib.metadata import version as installed

    rows = [
        {"what": "streamdp", "version": __version__},
        {"what": "python", "version": platform.python_version()},
        {"what": "sqlite", "version": sqlite3.sqlite_version},
        *(
            {"what": name, "version": installed(name)}
            for name in ("duckdb", "numpy", "apscheduler", "sqlite-utils")
        ),
    ]
    print_rows(rows, "json" if as_json else "table")
