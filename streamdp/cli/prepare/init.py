"""`streamdp init`."""

from __future__ import annotations

from pathlib import Path

import click

from streamdp.errors import ConfigurationError


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@click.option("--demo", is_flag=True, help="The demonstration on real flights, ready to run.")
def init(folder: Path, demo: bool) -> None:
    """Write a commented config.yaml into FOLDER (by default here); nothing is overwritten."""
    from importlib.resources import files

    target = folder / "config.yaml"
    template = "config.yaml" if demo else "start.yaml"
    text = files("streamdp").joinpath("demo", template).read_text(encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigurationError(
            "there is a configuration already", where=str(target), hint="name another folder"
        ) from None
    click.echo(f"wrote {target}")
    if demo:
        click.echo("next: streamdp plan, streamdp run --once, streamdp releases --last 5")
    else:
        click.echo("next: edit it (its lines say how), then streamdp validate and streamdp doctor")
