"""Sinks, by what the configuration names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.config.addresses import require_address, require_key
from streamdp.config.secrets import reveal
from streamdp.config.sinks import (
    CommandSinkSection,
    DuckDBSinkSection,
    FilesSinkSection,
    JsonLinesSinkSection,
    Sink,
    TableSinkSection,
    WebhookSinkSection,
)
from streamdp.errors import ConfigurationError
from streamdp.types import Clock
from streamdp.types import Sink as SinkProtocol

if TYPE_CHECKING:
    from sqlite_utils import Database

    from streamdp.sinks.webhook import Webhook


def sink(name: str, section: Sink, database: Database, clock: Clock) -> SinkProtocol:
    """One sink.

    Args:
        name: In the configuration.
        section: What stands there.
        database: The store's own connection, for the table in it.
        clock: Of the timestamps that are signed.
    """
    from streamdp.sinks.command import CommandSink
    from streamdp.sinks.files import FilesSink
    from streamdp.sinks.jsonl import JsonLinesSink
    from streamdp.sinks.stdout import StandardOutputSink
    from streamdp.sinks.table import TableSink
    from streamdp.sinks.warehouse import DuckDBTableSink
    from streamdp.sinks.webhook import WebhookSink

    if isinstance(section, TableSinkSection):
        return TableSink(name, database, section.table)
    if isinstance(section, JsonLinesSinkSection):
        return JsonLinesSink(name, section.path)
    if isinstance(section, FilesSinkSection):
        return FilesSink(name, section.path, section.kind)
    if isinstance(section, DuckDBSinkSection):
        return DuckDBTableSink(name, section.path, section.table)
    if isinstance(section, WebhookSinkSection):
        return WebhookSink(webhook(name, section, clock), section.attempts)
    if isinstance(section, CommandSinkSection):
        return CommandSink(
            name,
            section.argv,
            section.path,
            section.timeout,
            section.attempts,
            section.environment,
        )
    return StandardOutputSink(name)


def webhook(name: str, section: WebhookSinkSection, clock: Clock) -> Webhook:
    """Where to post, with its secrets read from where they are kept.

    Raises:
        ConfigurationError: A secret cannot be read, or is no address or key.
    """
    from streamdp.sinks.webhook import Webhook

    url, key = reveal(section.url), reveal(section.secret)
    try:
        require_address(url)
        require_key(key)
    except ValueError as error:
        raise ConfigurationError(str(error), where=f"sinks.{name}") from None
    return Webhook(name, url, key, section.timeout, clock)
