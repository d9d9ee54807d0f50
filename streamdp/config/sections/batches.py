"""The key `batches` of a source: how its records are cut into batches."""

from __future__ import annotations

import glob
from typing import Annotated, Any, Literal

from pydantic import (
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from streamdp.config.base.section import Section
from streamdp.config.base.values import Duration, Moment, PositiveDuration, TimeZone
from streamdp.objects.address import is_address, parsed

DAY = 86_400


class Windows(Section):
    """Batches cut by time: half-open windows, in UTC or by the clocks of a time zone."""

    column: str = Field(
        min_length=1,
        description="Column of type date or timestamp that gives the time of a record.",
        examples=["created_at"],
    )
    every: PositiveDuration = Field(
        description="Length of a window, as a duration of at least 1m.", examples=["1d"]
    )
    start: Moment = Field(
        description="Start of the first window, an ISO date or time; UTC unless it has an offset.",
        examples=["2026-01-01"],
    )
    timezone: TimeZone = Field(
        default="UTC",
        description="Time zone whose days windows are, with `every` in whole days: a day on which"
        " clocks change has 23 or 25 hours. Timestamps without an offset are in UTC all the same;"
        " dates are days of this zone. Default UTC.",
        examples=["Europe/Berlin"],
    )
    end: Moment | None = Field(
        default=None,
        description="End of the last window, an ISO date or time. Default: windows go on.",
        examples=["2027-01-01"],
    )
    lateness: Duration = Field(
        default=0,
        description="Time after its end during which a window still takes records, as a duration."
        " Later records are in no batch. Default 0s.",
        examples=["6h"],
    )
    growing: bool = Field(
        default=False,
        strict=True,
        description="Each batch holds all records up to the window's end, for gates that renew one"
        " answer. Default false.",
    )
    marker: str | None = Field(
        default=None,
        description="Path of a file that says that a window is complete; `{key}` stands for the"
        " batch's key. Default: no marker.",
        examples=["done/{key}"],
    )

    @field_validator("marker")
    @classmethod
    def _names_its_batch(cls, value: str | None) -> str | None:
        return value if value is None else _with_key(value)

    @field_validator("every")
    @classmethod
    def _not_too_short(cls, value: int) -> int:
        if value < 60:
            raise ValueError("a window is a minute or longer")
        return value

    @model_validator(mode="after")
    def _has_whole_days(self) -> Windows:
        walls = (self.start, self.every, self.end or 0)
        if self.timezone != "UTC" and any(seconds % DAY for seconds in walls):
            raise ValueError(
                "with a timezone windows are whole days: every: 1d, and start a date without a time"
            )
        return self

    @model_validator(mode="after")
    def _ends_after_it_starts(self) -> Windows:
        if self.end is not None and self.end < self.start + self.every:
            raise ValueError("between start and end there is no whole window")
        return self


class Partitions(Section):
    """Batches that are folders: one for each value of the partition column in the path."""

    partition: str = Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="Name of the partition column in the path: `day` for `day=*/`.",
        examples=["day"],
    )
    marker: str = Field(
        description="Path of a file that says that a partition is complete; `{key}` stands for the"
        " batch's key.",
        examples=["sales/day={key}/_SUCCESS"],
    )

    @field_validator("marker")
    @classmethod
    def _names_its_batch(cls, value: str) -> str:
        return _with_key(value)


def _with_key(marker: str) -> str:
    if "{key}" not in marker or glob.has_magic(marker):
        raise ValueError("a marker is a path with {key} in it, where the batch's key stands")
    return str(parsed(marker)) if is_address(marker) else marker


def _form(value: Any) -> str:
    """Which of the three forms was meant, so that errors are about that one."""
    if isinstance(value, Partitions) or (isinstance(value, dict) and "partition" in value):
        return "Partitions"
    return "files" if isinstance(value, str) else "Windows"


Batches = Annotated[
    Annotated[Literal["files"], Tag("files")]
    | Annotated[Windows, Tag("Windows")]
    | Annotated[Partitions, Tag("Partitions")],
    Discriminator(_form),
]
