"""The section `backup`: copies of the store that the daemon makes by itself."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator

from streamdp.config.base.section import Section
from streamdp.config.base.values import PositiveDuration


class Backup(Section):
    """Copies of the store in a folder, on another volume than the store and its anchor."""

    path: Path = Field(
        description="Folder of the copies, relative to the configuration. It is created if missing."
        " Keep it on another volume, and never put a copy back together with the anchor.",
        examples=["/mnt/other/copies"],
    )
    every: PositiveDuration = Field(
        default=3600,
        description="Time from one copy to the next, as a duration of at least 1m. What was spent"
        " since the last copy is charged again when it is put back. Default 1h.",
        examples=["1h"],
    )
    keep: int = Field(
        default=48,
        ge=1,
        le=100_000,
        strict=True,
        description="Number of copies that are kept; the oldest are removed. Default 48.",
    )

    @field_validator("every")
    @classmethod
    def _not_too_often(cls, value: int) -> int:
        if value < 60:
            raise ValueError("copies are a minute apart or longer")
        return value
