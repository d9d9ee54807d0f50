"""The sections `store` and `backup`: where the store is kept, and its copies."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator

from streamdp.objects import folder_of, is_address
from streamdp.sections.section import Section
from streamdp.sections.values import PositiveDuration


class Store(Section):
    """Where budget, releases and learned states are kept."""

    path: Path = Field(
        description="SQLite file with budget, releases and learned states. Relative to the"
        " configuration.",
        examples=["streamdp.db"],
    )
    anchor: Path | None = Field(
        default=None,
        description="Append-only file that detects a store restored from a backup. Keep it on"
        " another volume. Default: the store's path with `.anchor` appended.",
        examples=["/mnt/other/streamdp.anchor"],
    )
    max_clock_step: PositiveDuration = Field(
        default=30 * 86_400,
        description="Longest jump of the clock ahead of the last time in the store, as a duration."
        " Beyond it no window is sealed until someone has looked. Default 30d.",
        examples=["30d"],
    )

    def paths(self) -> tuple[Path, Path]:
        """The store's file and its anchor's."""
        from streamdp.store.anchor import default_anchor

        return self.path, self.anchor or default_anchor(self.path)


class Backup(Section):
    """Copies of the store in a folder or a storage, apart from the store and its anchor."""

    path: str = Field(
        min_length=1,
        description="Folder of the copies, relative to the configuration, created if missing; or"
        " `s3://BUCKET/FOLDER` of an S3-compatible storage. Keep it on another volume, and never"
        " put a copy back together with the anchor.",
        examples=["/mnt/other/copies", "s3://vault/streamdp"],
    )
    every: PositiveDuration = Field(
        default=3600,
        description="Time from one copy to the next, as a duration of at least 1m. What was spent"
        " since the last copy is charged again when it is put back. Default 1h.",
        examples=["1h"],
    )
    keep: int = Field(
        default=6,
        ge=1,
        le=100_000,
        strict=True,
        description="Number of copies that are kept; the oldest are removed. Default 6.",
    )

    @field_validator("path")
    @classmethod
    def _is_a_place(cls, value: str) -> str:
        return folder_of(value) if is_address(value) else value

    @field_validator("every")
    @classmethod
    def _not_too_often(cls, value: int) -> int:
        if value < 60:
            raise ValueError("copies are a minute apart or longer")
        return value
