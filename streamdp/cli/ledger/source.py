"""`streamdp source`."""

from __future__ import annotations

from pathlib import Path

import click

from streamdp.cli.options import config_option, load_configuration, operator_option, reason_option
from streamdp.planning.names import require_name
from streamdp.types import Json


@click.command()
@click.argument("name")
@click.option("--moved", is_flag=True, required=True, help="Its records are in another place.")
@operator_option
@reason_option
@config_option
def source(name: str, moved: bool, operator: str, reason: str, config_path: Path) -> None:
    """Declare that the source NAME has the same records in another place or by another column.

    Its budget goes on. A budget belongs to the data: without this command a source that reads other
    files, or takes its time or units from another column, is refused. Your name and reason stay in
    the ledger.

    With another time column records fall in other batches: the batch cap and the caps over windows
    begin anew for records that were paid for, and only the lifetime cap counts both. With another
    unit column the guarantee of the old unit ends.
    """
    import time

    from streamdp.daemon.lock import store_lock
    from streamdp.sources.section import same_data
    from streamdp.store.ledger.source_binding import claims_of
    from streamdp.store.sqlite import SqliteStore

    if not moved:
        raise click.UsageError("there is only --moved")
    configuration = load_configuration(config_path)
    require_name(name, configuration.sources, "source")
    path, anchor = configuration.store.paths()
    who, now = configuration.privacy.unit.column, int(time.time())
    data = configuration.sources[name].identity(who)
    with store_lock(path):
        store = SqliteStore.open(path, now, anchor)
        about = {"operator": operator, "reason": reason}
        before = claims_of(store.database).get(name, [None])[-1]
        store.move_source(name, data, same_data, about, now)
        store.close()
    click.echo(f"{name} goes on with its budget; {_cost(before, data)}")


def _cost(before: Json, after: Json) -> str:
    """Warning about the privacy cost of a move."""
    if before is None or before.get("column") == after.get("column"):
        return "batches that were released stay released"
    return (
        "its time is another column, so each batch may cost its cap once more for records that were"
        " paid for: only the lifetime cap counts both"
    )
