"""The section `sources`: where records come from and how they are cut into batches."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from streamdp.config.formats import Format
from streamdp.config.section import Section
from streamdp.config.values import Duration, Moment, PositiveDuration


class Windows(Section):
    """Batches cut by time: half-open windows in UTC."""

    column: str = Field(min_length=1, description="Date or timestamp column.")
    every: PositiveDuration = Field(description="Length of a window.")
    start: Moment = Field(description="Where the first window begins.")
    end: Moment | None = Field(default=None, description="Where the last one ends, if it does.")
    lateness: Duration = Field(default=0, description="How long a window fills after its end.")
    growing: bool = Field(
        default=False,
        strict=True,
        description="Each batch is all records up to its end: for gates that renew one answer.",
    )

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

    def is_growing(self) -> bool:
        """Whether a record is in all batches from its own on."""
        return isinstance(self.batches, Windows) and self.batches.growing
