"""`streamdp logs`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, json_option, load_configuration, moment
from streamdp.errors import StreamdpError
from streamdp.text import printable

if TYPE_CHECKING:
    from streamdp.types import Json

COLOURS = {"debug": "bright_black", "info": "green", "warning": "yellow", "error": "red"}


@click.command()
@config_option
@click.option("--job", help="Only of this job.")
@click.option("--batch", help="Only of this batch.")
@click.option("--release", help="Only of this release id.")
@click.option("--level", type=click.Choice(["debug", "info", "warning", "error"]), default="debug")
@click.option("--since", callback=moment, help="Only from this time on (ISO, UTC).")
@click.option("-f", "--follow", "following", is_flag=True, help="Wait for more.")
@json_option
def logs(
    config_path: Path,
    job: str | None,
    batch: str | None,
    release: str | None,
    level: str,
    since: int | None,
    following: bool,
    as_json: bool,
) -> None:
    """Read the log file, rotated parts included."""
    from streamdp.log.read import Filter, follow, read
    from streamdp.text import iso

    path = load_configuration(config_path).log.path
    if path is None:
        raise StreamdpError("this configuration writes no log file", hint="set log.path")
    if not (path.exists() or following):
        raise StreamdpError("there is no log yet", where=str(path), hint="`streamdp run` writes it")
    wanted = Filter(job, batch, release, level, (iso(since) or "").removesuffix("Z") or None)
    try:
        for line in read(path, wanted):
            _print(line, as_json)
        if following:
            for line in follow(path, wanted):
                _print(line, as_json)
    except KeyboardInterrupt:
        sys.exit(0)


def _print(line: dict[str, Json], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(line))
        return
    shown = dict(line)
    stamp, level = shown.pop("timestamp", ""), shown.pop("level", "")
    event = shown.pop("event", "")
    rest = printable(" ".join(f"{name}={value}" for name, value in shown.items()), lines=False)
    stamp, level, event = (printable(str(each), lines=False) for each in (stamp, level, event))
    click.echo(f"{stamp[:19]} {click.style(f'{level:7}', fg=COLOURS.get(level))} {event:22} {rest}")
