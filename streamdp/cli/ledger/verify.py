"""`streamdp verify`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import print_rows
from streamdp.errors import IntegrityError

if TYPE_CHECKING:
    from sqlite_utils import Database


@click.command()
@config_option
@json_option
def verify(config_path: Path, as_json: bool) -> None:
    """Check every page, row and release of the store, and that its anchor agrees.

    Reads alone, beside a running daemon. Exits with 6 if something was altered.
    """
    from streamdp import wiring
    from streamdp.store.schema.schema import open_to_read

    path, anchor = wiring.store_paths(load_configuration(config_path))
    database, rows = open_to_read(path), []
    for what, check in _checks(database, anchor):
        try:
            check()
            state, finding = "ok", ""
        except IntegrityError as error:
            state, finding = "WRONG", str(error).replace("\n", " ")
        rows.append({"check": what, "state": state, "finding": finding})
    print_rows(rows, "json" if as_json else "table")
    if any(row["state"] == "WRONG" for row in rows):
        click.get_current_context().exit(IntegrityError.exit_code)


def _checks(database: Database, anchor: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    from streamdp.store import archive, row_checksums
    from streamdp.store.anchor.check import require_agreement
    from streamdp.store.database import require_sound
    from streamdp.store.ledger import chain

    yield "pages and indexes are sound", lambda: require_sound(database)
    yield "the ledger's chain is whole and adds up", lambda: chain.verify(database)
    yield "every commit has its release, as it was drawn", lambda: archive.verify(database)
    yield "batches, deliveries and pauses are as written", lambda: row_checksums.verify(database)
    yield "the anchor agrees", lambda: require_agreement(database, anchor)
