"""What the daemon's own thread knows of its health, for the pulse and for alerts."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from streamdp.config import Configuration
from streamdp.sections.schedules import next_times
from streamdp.store.problems import Problem
from streamdp.store.pulse import LATE_AFTER, MOST, SLOW_AFTER, Asking, Pulse
from streamdp.store.reading.watch import Alert, as_told

if TYPE_CHECKING:
    from streamdp.daemon.rounds import Rounds
    from streamdp.types import Clock

MINUTE = 60

WAITED_FOR = frozenset({"timeout", "source-locked", "unreachable"})
"""Codes of failures that take their time: the other jobs of the source wait for each."""


def kind_of(failure: str) -> str:
    """A failure without its numbers: a wrong clock shows another time at each look.

    >>> kind_of("the clock shows 2038-11-24") == kind_of("the clock shows 2038-11-25")
    True
    """
    return re.sub(r"\d+", "", failure)


def asking_of(rounds: Rounds, clock: Clock) -> tuple[Asking, ...]:
    """Questions that are slow or hang, the oldest first."""
    timer = clock.timer()
    return tuple(
        Asking(
            each.source,
            each.job,
            each.at - each.at % MINUTE,
            "hung" if each.is_hung(timer) else "slow",
        )
        for each in rounds.busy()
        if timer - each.since > SLOW_AFTER
    )[:MOST]


def late_jobs(
    configuration: Configuration, unserved: Mapping[str, int], now: int
) -> dict[str, int]:
    """Jobs that woke and have not had their turn by their next time, and since when they wait.

    Those that wait longest come first.
    """
    found: dict[str, int] = {}
    for name, woke in unserved.items():
        if name not in configuration.tasks() or now - woke < LATE_AFTER:
            continue
        again = next(iter(next_times(configuration.schedule_of(name), woke, 1)), None)
        if again is not None and again <= now:
            found[name] = woke - woke % MINUTE
    return dict(sorted(found.items(), key=lambda each: each[1]))


def told_as_failing(
    configuration: Configuration,
    late: Iterable[str],
    asking: Iterable[Asking],
    problems: Iterable[Problem],
) -> set[str]:
    """Late jobs that wait behind failures of their source, which are told anyway.

    Each job of a locked or absent server waits for its time, so its next turn is late, in turns
    with the others'. A question that is slow or hangs is another reason.
    """
    sources, tasks = {each.source for each in asking}, configuration.tasks()
    failing = {
        configuration.source_of_task(each.about)
        for each in problems
        if each.about in tasks and not each.batch and each.code in WAITED_FOR
    }
    return {name for name in late if configuration.source_of_task(name) in failing - sources}


def late_alerts(
    configuration: Configuration, pulse: Pulse, told: Collection[Alert] = ()
) -> Iterator[Alert]:
    """An alert for each job that is late against its own schedule.

    One that is told is not told anew because another job's question is under way by now, unless
    that question hangs.
    """
    for job in pulse.late:
        source = configuration.source_of_task(job)
        hangs = any(each.source == source and each.state == "hung" for each in pulse.asking)
        reason = pulse.why_late(job, source)
        alert = Alert("late", job, "", f"{reason}; it has missed a turn of its schedule")
        yield alert if hangs else as_told(alert, told)


def notify(word: str) -> None:
    """Tell systemd, where it started this process: `READY=1`, `WATCHDOG=1`, `STOPPING=1`.

    References:
        https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
    """
    import socket

    place = os.environ.get("NOTIFY_SOCKET", "")
    if not place.startswith(("/", "@")):
        return
    address = "\0" + place[1:] if place[0] == "@" else place
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as other:
            other.setblocking(False)
            other.sendto(word.encode(), address)
    except OSError:
        return
