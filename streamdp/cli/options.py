"""Options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from streamdp.config import Configuration

DEFAULT_PATH = Path("config.yaml")

config_option = click.option(
    "-c",
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=DEFAULT_PATH,
    envvar="STREAMDP_CONFIG",
    show_default=True,
    show_envvar=True,
    help="The configuration.",
)
operator_option = click.option(
    "--operator", required=True, help="Who decides; it stays in the ledger for ever."
)
reason_option = click.option("--reason", required=True, help="Why; it stays there too.")
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")


def load_configuration(path: Path) -> Configuration:
    """The configuration at a path, checked.

    Raises:
        ConfigurationError: It cannot be used.
    """
    from streamdp.config import load

    return load(path)


def moment(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """Callback for options that take an ISO date or time, UTC if it names no zone."""
    from datetime import UTC, datetime

    from streamdp.text import YEARS

    if text is None:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no ISO date like 2013-06-01") from None
    if parsed.year not in YEARS:
        raise click.BadParameter(f"{text!r} is not of the years {YEARS[0]} to {YEARS[-1]}")
    return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp())
