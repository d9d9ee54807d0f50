"""`streamdp verify`."""

from __future__ import annotations

from pathlib import Path

import click

from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import print_rows
from streamdp.errors import IntegrityError


@click.command()
@config_option
@json_option
def verify(config_path: Path, as_json: bool) -> None:
    """Check every page, row and release of the store, and that its anchor agrees.

    Reads alone, beside a running daemon. Exits with 6 if something was altered.
    """
    from streamdp.reports.guarantee.verification import examined
    from streamdp.store.schema.schema import open_current

    path, anchor = load_configuration(config_path).store.paths()
    rows = [
        {"check": each.what, "state": "ok" if each.sound else "WRONG", "finding": each.finding}
        for each in examined(open_current(path), anchor)
    ]
    print_rows(rows, "json" if as_json else "table")
    if any(row["state"] == "WRONG" for row in rows):
        click.get_current_context().exit(IntegrityError.exit_code)
