"""What the section of every sink says of it, and the registry that finds one by its `kind`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

from streamdp.registry import Registry, subclass_of
from streamdp.sections.section import ByKind, Section
from streamdp.types import Clock, Sink

if TYPE_CHECKING:
    from streamdp.database import Database

Alone = Callable[["Database"], AbstractContextManager[None]]
"""Keeps other writers from a database, inside a `with` block."""


class StoreAccess(NamedTuple):
    """The store, for sinks that write into it.

    Args:
        database: Connection of the calling thread, in autocommit.
        alone: Keeps other writers from it.
    """

    database: Database
    alone: Alone


@dataclass(frozen=True, slots=True)
class SinkContext:
    """What a sink may need besides its section.

    Args:
        clock: Of the timestamps that are signed.
        store: The store; None for a sink outside of it.
    """

    clock: Clock
    store: StoreAccess | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A place that a sink writes to.

    Args:
        key: Key of the section that names it.
        place: What no two sinks may share: an absolute path, or an address.
        example: A file or object that is written there.
        table: The table within it, where a place holds the tables of several sinks.
    """

    key: str
    place: str
    example: str
    table: str | None = None


class SinkSection(Section):
    """The keys of a sink, and the sink that they make."""

    kind: str
    in_store: ClassVar[bool] = False
    """Whether the sink writes through the store's own connection."""
    secrets: ClassVar[tuple[str, ...]] = ()
    """Keys whose text must not stand in the configuration's file."""
    connections: ClassVar[tuple[str, ...]] = ()
    """Keys whose text must not hold a password there."""

    @abstractmethod
    def sink(self, name: str, context: SinkContext) -> Sink:
        """Make the sink of a name.

        Raises:
            ConfigurationError: A secret cannot be read, or a package is not installed.
        """

    def written(self) -> Written | None:
        """The file, folder or storage that is written to; None if it is none of them."""
        return None


SINKS: Registry[type[SinkSection]] = Registry(
    "streamdp.sinks",
    "sink",
    {
        "table": "streamdp.sinks.table:TableSinkSection",
        "jsonl": "streamdp.sinks.jsonl:JsonLinesSinkSection",
        "csv": "streamdp.sinks.files:FilesSinkSection",
        "parquet": "streamdp.sinks.files:FilesSinkSection",
        "objects": "streamdp.sinks.files:ObjectsSinkSection",
        "duckdb": "streamdp.sinks.warehouse:DuckDBSinkSection",
        "postgres": "streamdp.sinks.postgres:PostgresSinkSection",
        "webhook": "streamdp.sinks.webhook:WebhookSinkSection",
        "command": "streamdp.sinks.command:CommandSinkSection",
        "stdout": "streamdp.sinks.jsonl:StandardOutputSinkSection",
    },
    subclass_of(SinkSection),
)
"""The sinks there are; other packages offer a `SinkSection` in the group `streamdp.sinks`."""

AnySink = Annotated[SinkSection, ByKind("sink", SINKS.names, SINKS.find)]
"""The section of a sink, of whatever kind it says."""
