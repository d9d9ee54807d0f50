"""`streamdp schema`."""

from __future__ import annotations

import json

import click

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
