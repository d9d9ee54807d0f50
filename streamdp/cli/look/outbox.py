"""`streamdp outbox`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import print_rows
from streamdp.errors import StreamdpError
from streamdp.text import iso


@click.command()
@click.option("--retry", metavar="ID", help="Try the dead letter of this release or notice again.")
@click.option("--retry-all", is_flag=True, help="Try all dead letters again.")
@config_option
@json_option
def outbox(retry: str | None, retry_all: bool, config_path: Path, as_json: bool) -> None:
    """Show releases that a sink has not taken yet, and when each is tried next.

    A sink is tried again after 2, 4, 8 seconds and so on, at most an hour. Webhooks and commands
    give up after their number of attempts; then it is a dead letter, until --retry.
    """
    from streamdp.store.reading.reports import owed_rows
    from streamdp.store.schema.migrations import open_to_read

    path = load_configuration(config_path).store.path
    database = open_to_read(path)
    if retry is not None or retry_all:
        _retry(path, retry)
        return
    rows = [
        {
            "id": row["release_id"],
            "job": row["job"],
            "batch": row["batch"],
            "sink": row["sink"],
            "state": "waiting" if row["dead_at"] is None else "dead letter",
            "attempts": row["attempts"],
            "next_at": iso(row["next_at"]) if row["dead_at"] is None else None,
            "reason": row["reason"],
        }
        for row in owed_rows(database)
    ]
    print_rows(rows, "json" if as_json else "table", "undelivered")
    if not rows and not as_json:
        click.echo("everything is delivered", err=True)


def _retry(path: Path, release_id: str | None) -> None:
    """Ask for another delivery through the store; a running daemon looks every few seconds.

    Raises:
        StreamdpError: There is no such dead letter.
    """
    from streamdp.store import outbox as store
    from streamdp.store.database import connect, transaction
    from streamdp.store.schema.migrations import migrate

    now = int(time.time())
    database = connect(path, create=False)
    migrate(database, now)
    with transaction(database):
        revived = store.retry(database, release_id, now)
    if not revived:
        raise StreamdpError(
            f"there is no dead letter of {release_id}" if release_id else "there are none",
            hint="`streamdp outbox` lists them",
        )
    click.echo(f"{revived} will be tried again")
