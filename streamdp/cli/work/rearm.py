"""`streamdp rearm`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from streamdp.cli.options import config_option, load_configuration
from streamdp.errors import StreamdpError
from streamdp.planning.names import require_name
from streamdp.privacy.amounts import epsilon_text, nano_up


@click.command()
@click.argument("gate")
@click.option("--yes", is_flag=True, help="Do not ask.")
@config_option
def rearm(gate: str, yes: bool, config_path: Path) -> None:
    """Let GATE, which waits after an acceptance, begin another run.

    The run is charged in full before its first test; a daemon asks about what is due within
    seconds of its next wake, in order.
    """
    from streamdp.store.database import connect, transaction
    from streamdp.store.gates import rearm as arm
    from streamdp.store.schema.migrations import migrate

    configuration = load_configuration(config_path)
    require_name(gate, configuration.all_gates(), "gate")
    database = connect(configuration.store.path, create=False)
    migrate(database, int(time.time()))
    if not yes:
        price = epsilon_text(nano_up(configuration.all_gates()[gate].epsilon))
        click.confirm(f"A run of {gate} costs {price}. Spend it?", abort=True)
    with transaction(database):
        waited = arm(database, gate)
    if not waited:
        raise StreamdpError(f"{gate} does not wait", hint="`streamdp status` shows where it stands")
    click.echo(f"{gate} will be armed")
