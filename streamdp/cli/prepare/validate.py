"""`streamdp validate`."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import print_rows
from streamdp.text import iso
from streamdp.types import Json

if TYPE_CHECKING:
    from streamdp.config import Configuration


PREVIEW = "`streamdp preview SOURCE --truth-may-be-seen` shows, to who may see it, whether"


@click.command()
@config_option
@json_option
def validate(config_path: Path, as_json: bool) -> None:
    """Check the configuration without touching data; show the next five times of each job.

    If there is a store, sources must be those that it knows: it is read, and nothing is written.

    Times are UTC. Words that `init` wrote in capitals are named where they still stand.
    """
    from streamdp import wiring
    from streamdp.sections.schedules import next_times
    from streamdp.store.anchor.anchor import ONE_VOLUME, on_one_volume

    _name_unreplaced(config_path)
    configuration = load_configuration(config_path)
    rows: list[dict[str, Json]] = []
    wiring.tasks(configuration)
    _compare(configuration)
    for name in configuration.tasks():
        times = next_times(configuration.schedule_of(name), int(time.time()), 5)
        row: dict[str, Json] = {"job": name, "protects": configuration.privacy.unit.protects()}
        row |= {f"wake_{index}": iso(moment) for index, moment in enumerate(times, start=1)}
        rows.append(row)
    if not as_json:
        click.echo(f"{config_path} is valid", err=True)
        click.echo(f"{PREVIEW} values become what is meant", err=True)
        if on_one_volume(*configuration.store.paths()):
            click.echo(ONE_VOLUME, err=True)
        left_out = configuration.privacy.unit.left_out()
        if left_out is not None and not configuration.store.path.exists():
            click.echo(left_out, err=True)
    print_rows(rows, "json" if as_json else "table", "wakes at (UTC)")


def _compare(configuration: Configuration) -> None:
    """Refuse sources that the store knows as other data, as `run` would; nothing is written."""
    from streamdp import wiring
    from streamdp.errors import IntegrityError, StoreError
    from streamdp.store.schema.migrations import open_to_read

    if configuration.store.path.exists():
        try:
            database = open_to_read(configuration.store.path)
        except (StoreError, IntegrityError):
            return  # what is wrong with a store is said by `doctor`
        with closing(database):
            wiring.require_same_data(configuration, database)


def _name_unreplaced(config_path: Path) -> None:
    """Print to stderr which placeholders of `init` are left: errors may follow from them."""
    from streamdp.config.loader import MOST_BYTES
    from streamdp.disk import read_text

    with suppress(OSError, UnicodeDecodeError):  # `load` says what is wrong with it
        for line, word in _unreplaced(read_text(config_path, MOST_BYTES)):
            said = f"{config_path}:{line}: {word} is a placeholder of `init`: replace it"
            click.echo(said, err=True)


def _unreplaced(text: str) -> Iterator[tuple[int, str]]:
    """Lines that hold a placeholder of the configuration that `init` writes."""
    start = files("streamdp").joinpath("demo", "start.yaml").read_text(encoding="utf-8")
    words = {word for line in start.splitlines() for word in _capitals(line)}
    for number, line in enumerate(text.splitlines(), start=1):
        for word in _capitals(line):
            if word in words:
                yield number, word


def _capitals(line: str) -> list[str]:
    return re.findall(r"\b[A-Z][A-Z_]{3,}\b", line.partition("#")[0])


HELP = """Print the JSON Schema of the configuration.

\b
streamdp schema > streamdp.schema.json
and as first line of config.yaml:
# yaml-language-server: $schema=streamdp.schema.json
"""


@click.command(help=HELP)
def schema() -> None:
    """Print the JSON Schema of the configuration."""
    from streamdp.config import json_schema

    click.echo(json.dumps(json_schema(), indent=2))
