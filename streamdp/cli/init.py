"""`streamdp init`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click

from streamdp.errors import ConfigurationError

TEMPLATE = """\
# Proposed by `streamdp init`: counts by {named}, whose texts nobody listed. They are found
# privately (deploy/docs/how-to/keys.md), and what is found is published for ever. `streamdp plan`
# says what it costs, and of how many units a text is soon found.

store:
  path: streamdp.db

privacy:
  unit: record                    # if a person can have several records:
  # unit: {{name: person, column: ID, rows: 4}}   # without it one person can publish a text
  caps:                           # in epsilon; raised later by `streamdp cap` only
    batch: 2
    lifetime: 100
    delta: {{batch: 1e-9, lifetime: 1e-6}}   # the chance to lose more, of all releases together

sources:
  records:
    path: {path}
{batches}
releases:
  found:
    kind: keys
    source: records
    by: {by}
    epsilon: 1
    delta: 1e-9
    at_least: 5                   # no text of fewer records is ever found
{window}    sinks: [found]

  counts:
    kind: statistics
    source: records
    by: {by}
    groups: {{from: found, most: 50}}
    epsilon: 1
    measures: {{records: count}}
    sinks: [table]

sinks:
  table: {{kind: table, table: counts}}
  found: {{kind: table, table: found}}

log:
  path: streamdp.log
"""

BY_TIME = """\
    batches: {{column: {time}, every: 1d, start: {start}{end}}}
"""

NO_END = """\
    # each day costs, with records or without: add the end of records that no more come to
"""

BY_FILE = """\
    # keys of a first file are counted from the next one on: one file alone needs --time and --start
    batches: files                # a file is read once it was left alone for a minute (settle)
"""

WINDOW = """\
    window: 7                     # a week is asked at once: rare texts are found in many days
"""


def proposed(
    source: str, by: Sequence[str], time: str | None, start: str | None, end: str | None = None
) -> str:
    """The text of a configuration.

    Privacy: names and types of columns are looked at, and no record.

    Args:
        source: Path or glob of files.
        by: Columns of texts; by default the only one there is.
        time: Column that puts a record in a day; by default a file is a batch.
        start: First day of the records.
        end: The day after their last, where none come later.

    Raises:
        ConfigurationError: A column is not there, or it is not clear which is meant.
        SourceError: The files cannot be read.
    """
    from streamdp.backends.duckdb.engine import DuckDBBackend
    from streamdp.files import file_format
    from streamdp.types import Batch, TableQuery

    form = file_format(source)
    if form is None:
        raise ConfigurationError(
            "the format of these files is not known",
            where=source,
            hint="csv, jsonl, parquet, arrow",
        )
    if (time is None) != (start is None):
        raise ConfigurationError(
            "a column of time and the first day go together",
            where="--time" if start is None else "--start",
            hint="--time at --start 2026-01-01; without both a file is a batch",
        )
    if end is not None and start is None:
        raise ConfigurationError(
            "files are no days, so they have no last one",
            where="--end",
            hint="--time and --start go with it",
        )
    at = () if time is None else (time,)
    with closing(DuckDBBackend(os.path.abspath(source), form)) as backend:
        kinds = backend.columns_of(TableQuery(()), Batch("records", "init"))
        shown = backend.shown_columns((*by, *at), kinds)
    texts = [name for name, kind in kinds.items() if kind == "VARCHAR" and name != time]
    chosen = tuple(by) or tuple(texts)
    missing = [name for name in (*chosen, *at) if name not in kinds]
    if missing or (not by and len(texts) != 1):
        raise ConfigurationError(
            f"there is no column {missing[0]!r}" if missing else "which column is counted by?",
            where=source,
            hint=f"name one with --by; {shown}",
        )
    batches = BY_FILE
    if time is not None:
        batches = BY_TIME.format(
            time=json.dumps(time), start=start, end="" if end is None else f", end: {end}"
        )
        batches = batches if end is not None else NO_END + batches
        if form in ("csv", "jsonl"):
            batches = f"    types: {{{json.dumps(time)}: timestamp}}\n{batches}"
    return TEMPLATE.format(
        named=", ".join(chosen),
        by=json.dumps(list(chosen), ensure_ascii=False),
        path=json.dumps(os.path.abspath(source)),
        batches=batches,
        window=WINDOW if time is not None else "",
    )


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@click.option(
    "--anchor",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File on another volume for the store's anchor; asked for on a terminal.",
)
@click.option("--demo", is_flag=True, help="The demonstration on real flights, ready to run.")
@click.option("--source", help="Files of records, to propose counts by texts nobody listed.")
@click.option("--by", multiple=True, help="Column of those texts; several may be named.")
@click.option("--time", help="Column that says the day of a record; else a file is a batch.")
@click.option("--start", help="First day of the records, such as 2026-01-01.")
@click.option("--end", help="The day after their last, if no more come: empty days cost as well.")
def init(
    folder: Path,
    anchor: Path | None,
    demo: bool,
    source: str | None,
    by: tuple[str, ...],
    time: str | None,
    start: str | None,
    end: str | None,
) -> None:
    """Write a commented config.yaml into FOLDER (by default here); nothing is overwritten.

    With --source it proposes which texts of a column to find and to count; it looks at names and
    types of columns, and at no record.

    The anchor is a small file that tells what was spent since a copy of the store was made: it
    should be on another volume than the store.
    """
    import sys
    from importlib.resources import files

    from streamdp.store.anchor import on_one_volume

    target = folder / "config.yaml"
    template = "config.yaml" if demo else "start.yaml"
    text = files("streamdp").joinpath("demo", template).read_text(encoding="utf-8")
    if source is not None:
        text = proposed(source, by, time, start, end)
    folder.mkdir(parents=True, exist_ok=True)
    if anchor is None and not demo and not target.exists() and sys.stdin.isatty():
        asked = "file for the store's anchor, on another volume (empty: beside the store)"
        said = click.prompt(asked, default="", show_default=False)
        anchor = Path(said) if said else None
    if anchor is not None:
        text = _with_anchor(text, anchor)
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigurationError(
            "there is a configuration already", where=str(target), hint="name another folder"
        ) from None
    click.echo(f"wrote {target}")
    if anchor is not None and on_one_volume(target, folder / anchor):
        click.echo(f"{anchor} is on the volume of {folder}: another one is safer", err=True)
    if demo:
        click.echo("next: streamdp plan, streamdp run --once, streamdp releases --last 5")
    elif source is not None:
        click.echo("next: look at its unit and caps, then streamdp plan and streamdp run --once")
    else:
        click.echo("next: edit it (its lines say how), then streamdp validate and streamdp doctor")


def _with_anchor(text: str, anchor: Path) -> str:
    """A configuration whose store has its anchor there; its comment on the default goes."""
    import json

    lines = text.splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.startswith("  path: streamdp.db"))
    rest = [line for line in lines[at + 1 :] if " anchor: /" not in line]
    return "".join([*lines[: at + 1], f"  anchor: {json.dumps(str(anchor))}\n", *rest])
