"""`streamdp source`."""

from __future__ import annotations

from pathlib import Path

import click

from streamdp.cli.options import config_option, load_configuration, operator_option, reason_option
from streamdp.planning.names import require_name


@click.command()
@click.argument("name")
@click.option("--moved", is_flag=True, required=True, help="Its records are in another place.")
@operator_option
@reason_option
@config_option
def source(name: str, moved: bool, operator: str, reason: str, config_path: Path) -> None:
    """Say that the records of the source NAME are the same, in another place or by another column.

    Its budget goes on. A budget belongs to the data: without this word a source that reads other
    files, or takes its time or units from another column, is refused. Your name and reason stay in
    the ledger.
    """
    import time

    from streamdp import wiring
    from streamdp.daemon.lock import store_lock
    from streamdp.store.sqlite import SqliteStore

    if not moved:
        raise click.UsageError("there is only --moved")
    configuration = load_configuration(config_path)
    require_name(name, configuration.sources, "source")
    path, anchor = wiring.store_paths(configuration)
    who, now = configuration.privacy.unit.column, int(time.time())
    data = wiring.data_of(configuration.sources[name], who)
    with store_lock(path):
        store = SqliteStore.open(path, now, anchor)
        about = {"operator": operator, "reason": reason}
        store.move_source(name, data, wiring.same_data, about, now)
        store.close()
    click.echo(f"{name} goes on with its budget")
