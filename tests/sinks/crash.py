"""Kill a sink at each line of its code, deliver again, and look whether all is there once.

    python -m tests.sinks.crash KIND FOLDER [EVERY]

Each attempt is a process of its own, forked before any engine has started a thread.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import duckdb  # noqa: F401 - loaded once, before the forks

from tests.children import in_child
from tests.sinks.targets import TARGETS, release, wanted

FIRST, SECOND = release(1, 3), release(2, 3)


def killed_at(line: int, work: Callable[[], None]) -> bool:
    """Do the work in a child that dies before the `line`-th new line; whether it died.

    A line that runs again counts no more: what differs is done by then.
    """

    def traced() -> None:
        seen: set[tuple[str, int]] = set()

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            if "streamdp/sinks" not in frame.f_code.co_filename:
                return None
            if event == "line":
                seen.add((frame.f_code.co_filename, frame.f_lineno))
                if len(seen) == line:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)
        work()
        sys.settrace(None)

    ending = in_child(traced)
    ending.require(0, -signal.SIGKILL)
    return ending.code != 0


def sweep(kind: str, folder: Path, every: int) -> tuple[int, list[int]]:
    """Lines at which a kill was tried, and those after which something was missing or doubled."""
    target, points, bad = TARGETS[kind], 0, []
    for line in range(1, 10_000, every):
        home = folder / str(line)
        home.mkdir()

        def deliver(home: Path = home) -> None:
            sink = target.sink(home)
            sink.deliver(FIRST)
            sink.deliver(SECOND)

        def again(home: Path = home) -> object:
            deliver(home)
            return target.kept(home)

        died = killed_at(line, deliver)
        points += died
        if in_child(again).require(0) != [list(each) for each in wanted(FIRST, SECOND)]:
            bad.append(line)
        if not died:
            return points, bad
    raise AssertionError("the work never ended")


if __name__ == "__main__":
    kind, where, *every = sys.argv[1:]
    print(json.dumps(sweep(kind, Path(where), int(every[0]) if every else 1)))
