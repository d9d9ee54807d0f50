"""The pulse: what the daemon does now, in a small file beside the store.

It is written in place, in a file that has its whole size from the start: a full volume stops the
store and not the signs of life, so that dead, slow and unable to write are told apart. Commands,
page and metrics read the same file.

Privacy: there are names, the clock, and public words of errors. Since when a question runs is told
to the minute, and once it has run for 45 seconds.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from streamdp.disk import open_file

SIZE = 65_536
"""Bytes of the file."""

MOST = 100
"""Names of each list, at most."""

SLOW_AFTER = 45
"""Seconds after which a question counts as slow: known before a job is late for it."""

LATE_AFTER = 55
"""Seconds that a job waits before it may count as late: it is told within a minute."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A question that has run for a while.

    Args:
        source: Who is asked.
        job: For whom.
        since: POSIX time, to the minute.
        state: `slow`, or `hung` if it has not ended though its time is over.
    """

    source: str
    job: str
    since: int
    state: Literal["slow", "hung"]


@dataclass(frozen=True, slots=True)
class Pulse:
    """Signs of life.

    Args:
        at: When it was written, as POSIX time.
        pid: Who wrote it; None once the daemon has stopped on purpose.
        store: Why the store cannot be written; nothing if it can.
        round_at: When the newest round ended.
        asking: Questions that are slow or hang, the oldest first.
        late: Jobs that woke and have not had their turn by their next time, and since when.
        backup_at: When the newest copy was made that the daemon knows of.
        backup: Why the last copy could not be made.
        reload: Why the last reload was refused.
        events: How often each warning and error was logged since the start.
    """

    at: int
    pid: int | None
    store: str = ""
    round_at: int | None = None
    asking: tuple[Asking, ...] = ()
    late: dict[str, int] = field(default_factory=dict)
    backup_at: int | None = None
    backup: str = ""
    reload: str = ""
    events: dict[str, int] = field(default_factory=dict)

    def why_late(self, job: str, source: str) -> str:
        """Why a job is late, in words."""
        mine = [each for each in self.asking if each.source == source]
        for each in mine:
            if each.state == "hung":
                return f"a question for {each.job} to {source} hangs: look at its server"
        for each in mine:
            question = f"a question for {each.job} to {source} is slow"
            return f"{question}: it may go on until `engine.timeout`; a restart may burn its charge"
        return "its turn has not come: other jobs and sources are at work"


class PulseFile:
    """Writes the pulse of a store; where it cannot, nobody is worse off than without it."""

    def __init__(self, store: Path) -> None:
        self._file: int | None = None
        with suppress(OSError):
            self._file = open_file(path_of(store), os.O_RDWR | os.O_CREAT)
            os.posix_fallocate(self._file, 0, SIZE)

    def write(self, pulse: Pulse) -> None:
        """Overwrite what is there."""
        if self._file is None:
            return
        content = json.dumps(asdict(pulse)).encode()
        with suppress(OSError):
            if len(content) < SIZE:
                os.pwrite(self._file, content.ljust(SIZE), 0)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def path_of(store: Path) -> Path:
    """The file that belongs to a store, by whatever link the store is reached."""
    store = store.resolve()
    return store.with_name(store.name + ".pulse")


def read_pulse(store: Path) -> Pulse | None:
    """The newest pulse of a store; None if there is none, or none that can be read."""
    for _ in range(3):  # one that is being written may be half of each
        try:
            found = json.loads(path_of(store).read_bytes())
            asking = tuple(Asking(**each) for each in found.pop("asking"))
            return Pulse(**found, asking=asking)
        except OSError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
    return None
