"""`streamdp backup` and `streamdp restore`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, load_configuration
from streamdp.text import iso

if TYPE_CHECKING:
    from streamdp.database import Database


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path, dir_okay=False))
@config_option
def backup(path: Path | None, config_path: Path) -> None:
    """Copy the store to PATH, beside a running daemon, and verify the copy.

    Without PATH the copy goes where the section `backup` of the configuration says; `run` makes
    those by itself when they are due.

    The copy is for this user alone (mode 0600): it holds releases, budget and learned states. A
    store that is put back from it must be reconciled: what was spent since stays spent.
    """
    from streamdp.daemon.copies import place_of
    from streamdp.store.backup import backup as copy
    from streamdp.store.database import connect_to_read
    from streamdp.store.migrations import is_current
    from streamdp.store.verified_open import verify_copy

    configuration = load_configuration(config_path)
    store, section = configuration.store.path, configuration.backup
    if path is not None:
        copy(store, path, verify_copy)
        made = str(path)
    elif section is not None:
        made = place_of(section, store).add(section.keep, int(time.time()))
    else:
        raise click.UsageError("name a PATH, or write a section `backup` in the configuration")
    if is_current(connect_to_read(store)):
        click.echo(f"{made}: copied and verified")
    else:
        click.echo(f"{made}: copied, of an earlier schema; its pages and ledger are verified")


@click.command()
@click.argument("path")
@click.option("--yes", is_flag=True, help="Do not ask.")
@config_option
def restore(path: str, yes: bool, config_path: Path) -> None:
    """Say what putting the backup PATH, a file or s3://BUCKET/KEY, back would cost, and do it.

    The store that is there, if one is, stays beside the new one. What was released since the
    backup is no longer in the store; what it cost stays spent, which `streamdp reconcile` charges.
    """
    from streamdp.daemon.copies import fetched
    from streamdp.daemon.lock import store_lock
    from streamdp.store.backup import put_back
    from streamdp.store.database import connect_to_read
    from streamdp.store.verified_open import verify_copy

    store, anchor = load_configuration(config_path).store.paths()
    with fetched(path, store) as file:
        copy = connect_to_read(file)
        verify_copy(copy)
        next_step = _said(copy, anchor)
        if not yes:
            click.confirm(f"Put {path} in the place of {store}?", abort=True)
        with store_lock(store):
            put_back(file, store, int(time.time()), verify_copy)
    click.echo(next_step)


def _said(copy: Database, anchor: Path) -> str:
    """Say what was spent since a copy was made; returns the next step in words."""
    from streamdp.store.anchor import difference, is_older, is_readable, state_of
    from streamdp.store.clock_guard import written_at
    from streamdp.store.verified_open import require_own_anchor

    made = iso(written_at(copy))
    if not is_readable(anchor):
        click.echo(
            f"the anchor {anchor} is not there or damaged: nobody knows what was spent since"
        )
        click.echo(f"the copy was written last at {made}; what was released since is lost from it")
        return (
            "now: bring the anchor back if it is anywhere, and streamdp reconcile --assume-spent"
            " --operator NAME --reason TEXT; if it is lost, streamdp anchor adopt --operator NAME"
            " --reason TEXT, which shows the most that may have been spent and charges it"
        )
    require_own_anchor(copy, anchor)
    found = difference(copy, anchor)
    if found.anchor == state_of(copy):
        return f"nothing was written since {made}: the store can be worked with"
    for scope, total in found.totals().items():
        click.echo(f"{scope}: {total} was spent since, and stays spent")
    click.echo("what was released since is lost from the store, not from its sinks")
    if is_older(found, state_of(copy)):
        return (
            "now: the anchor is older than this copy: streamdp anchor adopt --operator NAME"
            " --reason TEXT"
        )
    return "now: streamdp reconcile --assume-spent --operator NAME --reason TEXT"
