"""Sinks, by what the configuration names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.config.sections.addresses import require_address, require_key
from streamdp.config.sections.secrets import reveal
from streamdp.config.sections.sinks import (
    CommandSinkSection,
    DuckDBSinkSection,
    FilesSinkSection,
    JsonLinesSinkSection,
    ObjectsSinkSection,
    PostgresSinkSection,
    Sink,
    TableSinkSection,
    WebhookSinkSection,
)
from streamdp.errors import ConfigurationError
from streamdp.types import Clock
from streamdp.types import Sink as SinkProtocol
from streamdp.wiring.extras import require_extra

if TYPE_CHECKING:
    from streamdp.config.model import Configuration
    from streamdp.database import Database
    from streamdp.sinks.webhook import Webhook


def sinks(configuration: Configuration, clock: Clock) -> dict[str, SinkProtocol]:
    """All sinks outside of the store, by name.

    Raises:
        ConfigurationError: A secret cannot be read, or an engine is not installed.
    """
    return {
        name: sink(name, section, clock)
        for name, section in configuration.sinks.items()
        if not isinstance(section, TableSinkSection)
    }


def table_sinks(configuration: Configuration, database: Database) -> dict[str, SinkProtocol]:
    """The tables in the store, written through its own connection."""
    from streamdp.sinks.table import TableSink
    from streamdp.store.database import one_writer

    return {
        name: TableSink(name, database, section.table, one_writer)
        for name, section in configuration.sinks.items()
        if isinstance(section, TableSinkSection)
    }


def sink(name: str, section: Sink, clock: Clock) -> SinkProtocol:
    """One sink outside of the store.

    Args:
        name: In the configuration.
        section: What stands there.
        clock: Of the timestamps that are signed.

    Raises:
        ConfigurationError: A secret cannot be read, or an engine is not installed.
    """
    from streamdp.sinks.command import CommandSink
    from streamdp.sinks.files import FilesSink
    from streamdp.sinks.jsonl import JsonLinesSink
    from streamdp.sinks.objects import ObjectsSink
    from streamdp.sinks.postgres import PostgresTableSink
    from streamdp.sinks.stdout import StandardOutputSink
    from streamdp.sinks.warehouse import DuckDBTableSink
    from streamdp.sinks.webhook import WebhookSink

    if isinstance(section, JsonLinesSinkSection):
        return JsonLinesSink(name, section.path, section.mode)
    if isinstance(section, FilesSinkSection):
        return FilesSink(name, section.path, section.kind, section.mode)
    if isinstance(section, ObjectsSinkSection):
        return ObjectsSink(name, section.address, section.form)
    if isinstance(section, DuckDBSinkSection):
        return DuckDBTableSink(name, section.path, section.table)
    if isinstance(section, PostgresSinkSection):
        require_extra("psycopg", "postgres", f"sinks.{name}")
        return PostgresTableSink(name, reveal(section.connection), section.table)
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
