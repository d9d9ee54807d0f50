"""`streamdp cap`."""

from __future__ import annotations

import getpass
import math
import os
from pathlib import Path

import click

from streamdp.cli.options import config_option, load_configuration
from streamdp.cli.output import print_rows
from streamdp.privacy.amounts import NANO, exact, number_text
from streamdp.privacy.filters import LARGEST_CAP, Caps
from streamdp.text import require_name
from streamdp.types import Json


@click.command()
@click.argument("scope")
@click.option("--batch", help="New cap of each batch, in the measure of the caps in force.")
@click.option("--lifetime", help="New cap over the life of the source, in the same measure.")
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
    """Change the caps of SCOPE (the name of a source).

    The ledger keeps the change, your login name and the reason.

    Without --batch and --lifetime the ledger takes over what the configuration says, windows
    included: edit it first. With them, set the same value in the configuration afterwards.

    Raising a cap lets more be learned about everyone whose records are in the source.
    """
    import time

    from streamdp.daemon.lock import store_lock
    from streamdp.store.ledger import ledger
    from streamdp.store.sqlite import SqliteStore

    configuration = load_configuration(config_path)
    require_name(scope, configuration.sources, "source")
    section = configuration.store
    now = int(time.time())
    with store_lock(section.path):
        store = SqliteStore.open(section.path, now, section.anchor)
        old = ledger.caps_of(store.database, scope)
        asked = batch or lifetime
        new = _changed(old, batch, lifetime) if asked else configuration.caps_of(scope)
        if new == old:
            raise click.UsageError("the ledger has these caps: edit the configuration first")
        print_rows(_compared(old, new), "table", f"caps of {scope}")
        if not yes:
            click.confirm("Write this into the ledger?", abort=True)
        with store.transaction():
            about = {"by": who(), "reason": reason}
            ledger.set_caps(store.database, scope, new, about, now)
        store.close()


def _changed(old: Caps, batch: str | None, lifetime: str | None) -> Caps:
    new = Caps(
        _nano(batch) if batch else old.batch_nano,
        _nano(lifetime) if lifetime else old.lifetime_nano,
        old.windows,
        old.measure,
    )
    if new.batch_nano > new.lifetime_nano:
        raise click.UsageError("a batch cannot be allowed more than all batches together")
    return new


def _compared(old: Caps, new: Caps) -> list[dict[str, Json]]:
    """Each cap before and after, by its width."""
    widths = {(limit.name, limit.measure): None for limit in (*old.limits, *new.limits)}
    return [
        {"cap": name, "measure": measure, "before": _amount(old, *key), "after": _amount(new, *key)}
        for key in widths
        for name, measure in [key]
    ]


def _amount(caps: Caps, name: str, measure: str) -> str:
    found = [limit.nano for limit in caps.limits if (limit.name, limit.measure) == (name, measure)]
    return number_text(min(found), measure) if found else "none"


def who() -> str:
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
    nano = math.floor(amount * NANO)
    if nano <= 0:
        raise click.BadParameter("a cap must be positive")
    if amount > LARGEST_CAP:
        raise click.BadParameter(f"a cap is at most {LARGEST_CAP}")
    return nano
