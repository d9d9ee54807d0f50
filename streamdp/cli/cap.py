"""`streamdp cap`."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import click

from streamdp.cli.jobs import require_name
from streamdp.cli.options import config_option, load_configuration
from streamdp.privacy.amounts import epsilon_text, exact, nano_up
from streamdp.privacy.filters import Caps


@click.command()
@click.argument("scope")
@click.option("--batch", help="New cap of each batch, as epsilon.")
@click.option("--lifetime", help="New cap over the life of the source, as epsilon.")
@click.option("--reason", required=True, help="Why; it stays in the ledger for ever.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@config_option
def cap(
    scope: str,
    batch: str | None,
    lifetime: str | None,
    reason: str,
    yes: bool,
    config_path: Path,
) -> None:
    """Change the caps of SCOPE (the name of a source) with a ledger entry.

    Raising a cap lets more be learned about everyone whose records are in the source. Set the
    same value in the configuration afterwards.
    """
    import time

    from streamdp.daemon.lock import store_lock
    from streamdp.store import ledger
    from streamdp.store.sqlite import SqliteStore

    if batch is None and lifetime is None:
        raise click.UsageError("say what to change: --batch, --lifetime, or both")
    configuration = load_configuration(config_path)
    require_name(scope, configuration.sources, "source")
    section = configuration.store
    now = int(time.time())
    with store_lock(section.path):
        store = SqliteStore.open(section.path, now, section.anchor)
        old = ledger.caps_of(store.database, scope)
        new = _changed(old, batch, lifetime)
        click.echo(
            f"{scope}: batch {epsilon_text(old.batch_nano)} -> {epsilon_text(new.batch_nano)},"
            f" lifetime {epsilon_text(old.lifetime_nano)} -> {epsilon_text(new.lifetime_nano)}"
        )
        if not yes:
            click.confirm("Write this into the ledger?", abort=True)
        with store.transaction():
            about = {"by": _who(), "reason": reason}
            ledger.set_caps(store.database, scope, new, about, now)
        store.close()


def _changed(old: Caps, batch: str | None, lifetime: str | None) -> Caps:
    new = Caps(
        _nano(batch) if batch else old.batch_nano,
        _nano(lifetime) if lifetime else old.lifetime_nano,
    )
    if new.batch_nano > new.lifetime_nano:
        raise click.UsageError("a batch cannot be allowed more than all batches together")
    return new


def _who() -> str:
    """Login name, or number of the user in a container that has no names."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def _nano(text: str) -> int:
    try:
        amount = exact(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if amount <= 0:
        raise click.BadParameter("a cap is positive")
    return nano_up(amount)
