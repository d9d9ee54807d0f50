"""`streamdp reconcile`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, load_configuration, operator_option, reason_option

if TYPE_CHECKING:
    from streamdp.store.anchor.check import Difference


@click.command()
@click.option("--assume-spent", is_flag=True, required=True, help="Charge all that is missing.")
@operator_option
@reason_option
@config_option
def reconcile(assume_spent: bool, operator: str, reason: str, config_path: Path) -> None:
    """Charge what the anchor knows and the ledger does not, and go on from there.

    For a store that was restored from a backup, or is an older copy: what was spent since is
    charged and burnt, since nobody can tell what was released for it. Where the
    store is gone a new one is made, with these charges alone. Your name and reason stay in the
    ledger.
    """
    import time

    from streamdp.daemon.lock import store_lock
    from streamdp.store.anchor.reconcile import reconcile as reconcile_store

    if not assume_spent:
        raise click.UsageError("what is missing can only be assumed spent: --assume-spent")
    configuration = load_configuration(config_path)
    path, anchor = configuration.store.paths()
    about = {"operator": operator, "reason": reason}
    with store_lock(path):
        terms, data = configuration.terms(), configuration.data()
        found = reconcile_store(path, anchor, terms, data, about, int(time.time()))
    _say(found)


def _say(found: Difference) -> None:
    from streamdp.privacy.amounts import Losses, total_text

    sums: dict[str, list[Losses]] = {}
    for spent in found.missing:
        sums.setdefault(spent.scope, []).append(spent.losses)
    for scope, losses in sums.items():
        click.echo(f"{scope}: charged {total_text(losses)} that the ledger did not know of")
    click.echo(
        f"{len(found.missing)} charges written behind row {found.ledger_seq}; the store can be"
        " worked with again"
    )
