"""A command: run for each release or notice, which it gets as JSON on its input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from streamdp.errors import SinkError
from streamdp.sections.values import PositiveDuration
from streamdp.sinks.columns import record
from streamdp.sinks.section import SinkContext, SinkSection
from streamdp.types import Release

PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where programs without a slash in their name are looked for."""


class CommandSinkSection(SinkSection):
    """A program that gets each release as JSON on its standard input; there is no shell."""

    kind: Literal["command"] = Field(
        description="`command`: a program gets each release as JSON on its standard input. No"
        " shell is used."
    )
    argv: tuple[str, ...] = Field(
        min_length=1,
        description="Program and its arguments.",
        examples=[["/usr/local/bin/notify", "--team", "data"]],
    )
    path: Path = Field(
        default=Path("."),
        description="Folder in which the program runs, relative to the configuration. Default: the"
        " configuration's folder.",
        examples=["/srv/hooks"],
    )
    timeout: PositiveDuration = Field(
        default=30,
        description="Longest run of the program, as a duration. Then it and its children are"
        " killed. Default 30s.",
        examples=["30s"],
    )
    attempts: int = Field(
        default=12,
        ge=1,
        le=1000,
        strict=True,
        description="Number of failed tries after which a delivery becomes a dead letter. Default"
        " 12.",
    )
    environment: dict[str, str] = Field(
        default={},
        description="Environment variables of the program, by name. It gets these and PATH alone."
        " Default: none.",
        examples=[{"TEAM": "data"}],
    )

    @field_validator("argv")
    @classmethod
    def _names_a_program(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value[0] or any("\0" in word for word in value):
            raise ValueError("the first word names a program, and no word holds a zero byte")
        return value

    @field_validator("environment")
    @classmethod
    def _has_names(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not name or "=" in name or "\0" in name + text:
                raise ValueError(f"{name!r} cannot be a variable of the environment")
        return value

    def sink(self, name: str, context: SinkContext) -> CommandSink:
        """The sink, which runs nothing yet."""
        return CommandSink(
            name, self.argv, self.path, self.timeout, self.attempts, self.environment
        )


class CommandSink:
    """Runs a program without a shell; success is exit code 0 within the time allowed.

    It gets a JSON object on standard input, one line, and `STREAMDP_RELEASE_ID` and what the
    configuration gives it in an otherwise empty environment. A program may get the same release
    twice, after a failure or a crash: the id tells. What it prints is dropped. It and all it
    started are killed when its time is over.

    Args:
        name: Of the sink.
        argv: Program and arguments; relative paths are relative to `folder`.
        folder: Where it runs.
        timeout: Seconds it may take.
        attempts: How often one delivery is tried.
        environment: Variables it gets besides.
    """

    def __init__(
        self,
        name: str,
        argv: tuple[str, ...],
        folder: Path,
        timeout: int,
        attempts: int,
        environment: Mapping[str, str],
    ) -> None:
        self.name = name
        self.attempts = attempts
        self._argv, self._folder, self._timeout = argv, folder, timeout
        self._environment = {"PATH": PATH, "LANG": "C.UTF-8", **environment}

    def deliver(self, release: Release) -> None:
        """Run the program once.

        Raises:
            SinkError: It cannot be started, took too long, or ended with another code than 0.
        """
        try:
            process = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self._folder,
                env={**self._environment, "STREAMDP_RELEASE_ID": release.id},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "a word of it is no argument"
            raise self._failed(f"cannot be started: {why}") from None
        try:
            process.communicate((json.dumps(record(release)) + "\n").encode(), self._timeout)
        except subprocess.TimeoutExpired:
            _kill_group(process)
            raise self._failed(f"took longer than {self._timeout} s and was killed") from None
        except BaseException:
            _kill_group(process)
            raise
        if process.returncode != 0:
            raise self._failed(f"ended with code {process.returncode}")

    def _failed(self, how: str) -> SinkError:
        return SinkError(
            f"the command of sink {self.name} {how}",
            where=self._argv[0],
            hint="try it by hand: it gets one JSON object on standard input",
            sink=self.name,
        )


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program that was not waited for yet, and all it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
