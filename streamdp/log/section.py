"""The section `log`: where events go, and from which level."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from streamdp.sections.section import Section
from streamdp.sections.values import Size
from streamdp.types import Log as Logs


class Rotation(Section):
    """When a log file is closed and how many are kept."""

    size: Size = Field(
        default=10_000_000,
        description="Size at which the log file is closed, in B, kB, MB or GB. Default 10 MB.",
        examples=["10 MB"],
    )
    keep: int = Field(
        default=5,
        ge=1,
        le=1000,
        strict=True,
        description="Number of closed log files that are kept. Default 5.",
    )


class Log(Section):
    """The log: JSON lines in a file, readable lines on the terminal."""

    path: Path | None = Field(
        default=None,
        description="File for the log in JSON lines, relative to the configuration. Default: no"
        " file.",
        examples=["streamdp.log"],
    )
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe level that is logged. Default `info`."
    )
    stderr: Literal["text", "json", "off"] = Field(
        default="text",
        description="What the daemon writes to standard error: readable lines (`text`), JSON lines"
        " (`json`, for containers), or nothing (`off`). Default `text`.",
    )
    rotate: Rotation = Field(
        default=Rotation(),
        description="When the log file is closed, and how many closed files are kept.",
        examples=[{"size": "10 MB", "keep": 5}],
    )

    def start(self, *, console: bool) -> Logs:
        """Send events there, and to the terminal if wanted."""
        from streamdp.log.setup import configure

        shown = self.stderr if console else "off"
        return configure(self.path, self.level, self.rotate.size, self.rotate.keep, shown)
