"""Memory that runs out: at any allocation of Python, and under a limit of the whole process.

A round that is starved may end for lack of memory alone, and its daemon goes on. What was reserved
is burnt or committed, never forgotten, and a restart does the rest. Libraries in C that do not look
at what they are given may end the process: that is a kill.
"""

from __future__ import annotations

import gc
import importlib
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any
from unittest import mock

from streamdp.engine.attempts import Outcomes, Task
from streamdp.engine.runner import Runner
from streamdp.errors import OutOfMemoryError
from tests.children import in_child
from tests.crash.home import Home, folder
from tests.crash.kills import aftermath

starver: Any
try:
    starver = importlib.import_module("_testcapi")
except ImportError:
    starver = None

LAST = 120_000
"""No round of the small installation asks for memory so often."""

CRASHES = {-signal.SIGABRT, -signal.SIGSEGV}


def cases(count: int) -> Iterator[tuple[int, int]]:
    """The first allocation of a round that fails, and how many fail."""
    lengths = (1, 50, 5000)
    for number in range(count):
        yield number * LAST // count, lengths[number % len(lengths)]


def violations(template: Home, case: tuple[int, int]) -> Iterator[str]:
    """Let allocations of a round fail, go on, restart, and compare."""
    with folder() as place:
        home = template.copy(place / "home")
        ending = in_child(lambda: _starved(home, *case))
        if ending.code not in {0, *CRASHES}:
            yield f"{case}: ended with {ending.code}: {ending.trace[-600:]}"
        yield from (f"{case}: {wrong}" for wrong in aftermath(home, place))


def _starved(home: Home, first: int, count: int) -> int:
    """A life of two rounds; the first has its allocations fail, and what is left is done after."""
    whole = Runner.round
    hungry = iter([True])

    def round_(self: Runner, tasks: Iterable[Task], *rest: Any) -> Outcomes:
        if not next(hungry, False):
            return whole(self, tasks, *rest)
        outcomes = Outcomes()
        with suppress(MemoryError, OutOfMemoryError):
            try:
                starver.set_nomemory(first, first + count)
                outcomes = whole(self, tasks, *rest)
            finally:
                starver.remove_mem_hooks()
        return outcomes

    gc.disable()
    with mock.patch.object(Runner, "round", round_):
        return home.live(rounds=3).released
