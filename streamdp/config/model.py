"""The configuration as frozen objects: one class a section of the YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from streamdp.config.formats import Format
from streamdp.config.releases import Name, Release
from streamdp.config.section import Section
from streamdp.config.values import Duration, Moment, PositiveDuration, PositiveRational, Size
from streamdp.types import Json


class Store(Section):
    """Where budget, releases and learned states are kept."""

    path: Path = Field(description="SQLite file, relative to the configuration.")
    anchor: Path | None = Field(
        default=None,
        description="Append-only file that finds out a store put back from a backup; keep it on"
        " another volume. By default beside the store.",
    )


class CapsSection(Section):
    """What one record may lose, in epsilon; a later rise needs `streamdp cap`."""

    batch: PositiveRational = Field(description="In all releases of one batch.")
    lifetime: PositiveRational = Field(description="In all releases of a source, for ever.")


class Privacy(Section):
    """In which terms privacy is promised."""

    unit: str = Field(min_length=1, description="What one record stands for, in a word.")
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


class Windows(Section):
    """Batches cut by time: half-open windows in UTC."""

    column: str = Field(min_length=1, description="Date or timestamp column.")
    every: PositiveDuration = Field(description="Length of a window.")
    start: Moment = Field(description="Where the first window begins.")
    end: Moment | None = Field(default=None, description="Where the last one ends, if it does.")
    lateness: Duration = Field(default=0, description="How long a window fills after its end.")

    @field_validator("every")
    @classmethod
    def _not_too_short(cls, value: int) -> int:
        if value < 60:
            raise ValueError("a window is a minute or longer")
        return value

    @model_validator(mode="after")
    def _ends_after_it_starts(self) -> Windows:
        if self.end is not None and self.end < self.start + self.every:
            raise ValueError("between start and end there is no whole window")
        return self


class Source(Section):
    """Where records come from and how they are cut into batches."""

    path: str = Field(min_length=1, description="File or glob, or demo:NAME for shipped data.")
    format: Format | None = Field(
        default=None, description="By default, what the name of the file says."
    )
    batches: Literal["files"] | Windows = Field(description="Time windows, or one file a batch.")

    @field_validator("batches", mode="before")
    @classmethod
    def _never_by_count(cls, value: Any) -> Any:
        counting = {"rows", "records", "count", "size", "every_rows"}
        if isinstance(value, int) or (isinstance(value, dict) and counting & value.keys()):
            raise ValueError(
                "batches cannot be cut by counting records: one record more would move the"
                " borders of every later batch, so it would be in all of their releases;"
                " cut by time, or give each batch a file"
            )
        return value


class TableSinkSection(Section):
    """A table in the store."""

    kind: Literal["table"]
    table: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$")

    @field_validator("table")
    @classmethod
    def _not_a_table_of_the_store(cls, value: str) -> str:
        own = "instance batch ledger release learner outbox pause migration"
        if value.lower() in own.split() or value.lower().startswith("sqlite"):
            raise ValueError("the store has a table of that name; choose another")
        return value


class JsonLinesSinkSection(Section):
    """A file with one JSON object a line."""

    kind: Literal["jsonl"]
    path: Path


class StandardOutputSinkSection(Section):
    """Standard output, one JSON object a line."""

    kind: Literal["stdout"]


Sink = Annotated[
    TableSinkSection | JsonLinesSinkSection | StandardOutputSinkSection,
    Field(discriminator="kind"),
]


class Rotation(Section):
    """When a log file is closed and how many are kept."""

    size: Size = 10_000_000
    keep: int = Field(default=5, ge=1, le=1000, strict=True)


class Log(Section):
    """The log: JSON lines in a file, readable lines on the terminal."""

    path: Path | None = Field(default=None, description="None: no file.")
    level: Literal["debug", "info", "warning", "error"] = "info"
    rotate: Rotation = Rotation()


class Configuration(Section):
    """A whole configuration; paths are absolute once it is loaded."""

    store: Store
    privacy: Privacy
    sources: dict[Name, Source] = Field(min_length=1)
    releases: dict[Name, Release] = Field(min_length=1)
    sinks: dict[Name, Sink] = Field(default={})
    log: Log = Log()


def json_schema() -> Json:
    """The schema editors check a configuration against."""
    return {
        **Configuration.model_json_schema(),
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "streamdp configuration",
    }
