"""`streamdp version` and `streamdp --version`: also of which commit it is."""

from __future__ import annotations

import platform

import click

from streamdp.cli.options import json_option
from streamdp.cli.output import print_rows
from streamdp.version import __version__


def line() -> str:
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
