"""A sink of another package: a message of each release in a folder, as mail programs read it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from streamdp.sections.secrets import Secret, reveal
from streamdp.sinks.section import SinkContext, SinkSection, Written
from streamdp.types import Release


class MaildirSinkSection(SinkSection):
    """A folder of messages."""

    secrets: ClassVar[tuple[str, ...]] = ("password",)

    kind: Literal["maildir"] = Field(description="`maildir`: a folder of messages.")
    path: Path = Field(description="Folder of the messages.", examples=["mail"])
    password: Secret = Field(description="Stands in each message.", examples=["${PASSWORD}"])

    def sink(self, name: str, context: SinkContext) -> Maildir:
        """The sink."""
        return Maildir(name, self.path, reveal(self.password))

    def written(self) -> Written:
        """The folder."""
        path = os.path.realpath(self.path)
        return Written("path", path, f"{path}/message.eml")


@dataclass
class Maildir:
    """Writes one message a release, under its id."""

    name: str
    folder: Path
    password: str

    def deliver(self, release: Release) -> None:
        """Write one message."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / f"{release.id}.eml").write_text(f"{release.job} {release.batch}\n")
