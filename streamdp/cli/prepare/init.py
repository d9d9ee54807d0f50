"""`streamdp init`."""

from __future__ import annotations

from pathlib import Path

import click

from streamdp.errors import ConfigurationError


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

    from streamdp.cli.prepare.proposal import proposed
    from streamdp.store.anchor.anchor import on_one_volume

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
