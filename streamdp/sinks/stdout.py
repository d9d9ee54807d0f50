"""Standard output: one JSON line a release; a second delivery is a second line."""

from __future__ import annotations

import json
import sys
from typing import Literal

from pydantic import Field

from streamdp.errors import SinkError
from streamdp.sinks.columns import record
from streamdp.sinks.section import SinkContext, SinkSection
from streamdp.types import Release


class StandardOutputSinkSection(SinkSection):
    """Standard output, one JSON object a line."""

    kind: Literal["stdout"] = Field(
        description="`stdout`: standard output, one JSON object a line."
    )

    def sink(self, name: str, context: SinkContext) -> StandardOutputSink:
        """The sink."""
        return StandardOutputSink(name)


class StandardOutputSink:
    """Prints a line a delivery; its reader must drop lines with a release id it has seen."""

    def __init__(self, name: str) -> None:
        self.name = name

    def deliver(self, release: Release) -> None:
        """Print one line.

        Raises:
            SinkError: Nobody reads any more.
        """
        try:
            print(json.dumps(record(release)), file=sys.stdout, flush=True)
        except (OSError, ValueError):
            raise SinkError(
                f"sink {self.name} cannot write: standard output is closed or full",
                hint="let something read it, or take the sink out",
                sink=self.name,
            ) from None
