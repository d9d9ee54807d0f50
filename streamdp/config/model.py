"""The configuration as frozen objects: one class a section of the YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from streamdp.config.alerts import Alerts
from streamdp.config.by_kind import Release
from streamdp.config.caps import CapsSection
from streamdp.config.releases import Name, ReleaseSection
from streamdp.config.schedules import Schedule
from streamdp.config.section import Section
from streamdp.config.sinks import Sink
from streamdp.config.sources import Source
from streamdp.config.units import Unit
from streamdp.config.values import PositiveDuration, Size
from streamdp.config.web import Web
from streamdp.gates.section import Gate
from streamdp.types import Json


class Store(Section):
    """Where budget, releases and learned states are kept."""

    path: Path = Field(description="SQLite file, relative to the configuration.")
    anchor: Path | None = Field(
        default=None,
        description="Append-only file that finds out a store put back from a backup; keep it on"
        " another volume. By default beside the store.",
    )
    max_clock_step: PositiveDuration = Field(
        default=30 * 86_400,
        description="How far the clock may be ahead of the last time the store knew; beyond it"
        " no window is sealed until someone has looked.",
    )


class Privacy(Section):
    """In which terms privacy is promised."""

    unit: Unit = Field(description="What one record stands for, in a word; or who has several.")
    neighbours: Literal["add-remove", "substitute"] = Field(
        default="add-remove",
        description="Neighbours differ by one record more, or in one record.",
    )
    caps: CapsSection
    allow_large_epsilon: bool = Field(
        default=False,
        strict=True,
        description="Admit an epsilon above 20, which protects next to nothing.",
    )


class Rotation(Section):
    """When a log file is closed and how many are kept."""

    size: Size = Field(default=10_000_000, description="Of the file, from which on it is closed.")
    keep: int = Field(default=5, ge=1, le=1000, strict=True, description="Closed files that stay.")


class Log(Section):
    """The log: JSON lines in a file, readable lines on the terminal."""

    path: Path | None = Field(default=None, description="JSON lines; by default no file.")
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Events below it are dropped."
    )
    stderr: Literal["text", "json", "off"] = Field(
        default="text",
        description="What a daemon says on standard error: readable lines, JSON lines for"
        " containers, or nothing.",
    )
    rotate: Rotation = Field(default=Rotation(), description="When the file is put aside.")


class Configuration(Section):
    """A whole configuration; paths are absolute once it is loaded."""

    store: Store
    privacy: Privacy
    sources: dict[Name, Source] = Field(min_length=1)
    releases: dict[Name, Release] = Field(min_length=1)
    gates: dict[Name, Gate] = Field(default={})
    sinks: dict[Name, Sink] = Field(default={})
    log: Log = Log()
    alerts: Alerts | None = Field(default=None, description="Who is told of what needs a hand.")
    web: Web | None = Field(
        default=None, description="A page beside the daemon; needs the extra streamdp[web]."
    )

    def all_gates(self) -> dict[str, Gate]:
        """Gates by name; the gate of a release is called after it, NAME.gate."""
        own = {
            f"{name}.gate": Gate.model_construct(**dict(release.gate), release=(name,))
            for name, release in self.releases.items()
            if release.gate is not None
        }
        return {**self.gates, **own}

    def source_of(self, gate: Gate) -> str:
        """The source whose batches a gate is asked about."""
        return gate.source or self.releases[gate.release[0]].source

    def source_of_task(self, task: str) -> str:
        """The source of a scheduled release or gate."""
        if task in self.releases:
            return self.releases[task].source
        return self.source_of(self.gates[task])

    def first_release(self, gate: Gate) -> ReleaseSection | None:
        """The release whose column a gate tests; None if it has one of its own."""
        return self.releases[gate.release[0]] if gate.release else None

    def gated(self) -> dict[str, str]:
        """Releases that have a gate, and its name."""
        return {job: name for name, gate in self.all_gates().items() for job in gate.release}

    def tasks(self) -> list[str]:
        """What is scheduled: all releases, and the gates that let nothing release."""
        return [*self.releases, *(name for name, gate in self.gates.items() if not gate.release)]

    def schedule_of(self, task: str) -> Schedule:
        """When a task wakes."""
        return (self.releases if task in self.releases else self.gates)[task].schedule


def json_schema() -> Json:
    """The schema editors check a configuration against."""
    return {
        **Configuration.model_json_schema(),
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "streamdp configuration",
    }
