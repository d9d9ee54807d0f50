"""A child process that can be killed, or refused, at every write: ptrace and seccomp, no compiler.

A filter in the kernel stops the child before each call that changes files, and a mark (a call that
nothing else makes) stops it before each SQL statement. The parent counts the stops. At the one it
was asked for it kills with SIGKILL: before the call, half-way through a write, or after it. What a
process held in memory is gone by then, so the state after a statement is the state before the next
stop. Or it answers in the kernel's place that the disk is full: once, or from there on.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import sqlite3
import struct
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from streamdp.errors import StreamdpError
from tests.children import leave_behind

Moment = Literal["before", "half", "after", "full", "full once"]

WRITES = ("write", "pwrite", "writev", "allocate", "fsync", "fdatasync")
"""Calls that fail on a full disk."""

_X86 = {
    1: "write", 18: "pwrite", 20: "writev", 74: "fsync", 75: "fdatasync", 76: "truncate",
    77: "truncate", 82: "rename", 264: "rename", 316: "rename", 87: "unlink", 263: "unlink",
    83: "mkdir", 86: "link", 265: "link", 90: "chmod", 91: "chmod", 268: "chmod",
    285: "allocate", 40: "sendfile", 326: "copy", 146: "sql",
}  # fmt: skip
_ARM = {
    64: "write", 68: "pwrite", 66: "writev", 82: "fsync", 83: "fdatasync", 45: "truncate",
    46: "truncate", 38: "rename", 276: "rename", 35: "unlink", 34: "mkdir", 37: "link",
    52: "chmod", 53: "chmod", 47: "allocate", 71: "sendfile", 285: "copy", 125: "sql",
}  # fmt: skip
_CALLS = {"x86_64": _X86, "aarch64": _ARM}.get(platform.machine(), {})
_OPENAT = {"x86_64": 257, "aarch64": 56}.get(platform.machine(), -1)
_O_CREAT = os.O_CREAT

FOREIGN = 70
"""Exit status of a child that ended in an exception that is not ours."""

PATIENCE = 900
"""Seconds after which a child is taken to hang: longer than any life on a busy machine."""

_TRACEME, _PEEKUSER, _POKEUSER, _CONT, _SYSCALL = 0, 3, 6, 7, 24
_SETOPTIONS, _GETEVENTMSG = 0x4200, 0x4201
_OPTIONS = 0x1 | 0x8 | 0x80 | 0x100000
"""Tell system-call stops from signals, follow threads, stop at the filter, die with the tracer."""
_EVENT_SECCOMP, _WALL = 7, 0x40000000
_ANSWER, _CALL, _FIRST, _BUFFER, _SIZE = 10 * 8, 15 * 8, 14 * 8, 13 * 8, 12 * 8
"""Where x86-64 keeps the result of a call, its number, and its arguments."""

INTEL = platform.machine() == "x86_64"

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


@dataclass(frozen=True, slots=True)
class Point:
    """What happens to a child at its n-th stop: where in it it dies, or that the disk is full."""

    stop: int
    moment: Moment


@dataclass(frozen=True, slots=True)
class Life:
    """How a child ended, and the stops it came to.

    Args:
        killed: Whether it died at its point, and not of itself.
        status: Exit status of one that was not killed.
        stops: Kinds of calls, in order.
        trouble: The exception that it ended in, with where it was raised.
    """

    killed: bool
    status: int
    stops: tuple[str, ...]
    trouble: str = ""

    def deaths(self) -> Iterator[Point]:
        """Every place at which such a child can die.

        Nothing changes a file between two stops, so a death after one call is that before the next.
        """
        for number, kind in enumerate(self.stops):
            yield Point(number, "before")
            if kind in ("write", "pwrite") and INTEL:
                yield Point(number, "half")
        if self.stops and self.stops[-1] != "sql":
            yield Point(len(self.stops) - 1, "after")

    def refusals(self) -> Iterator[Point]:
        """Every write that a full disk can refuse, alone or with all that follow."""
        for number, kind in enumerate(self.stops):
            if kind in WRITES and INTEL:
                yield Point(number, "full")
                yield Point(number, "full once")


@cache
def supported() -> bool:
    """Whether this system lets a process trace its child."""
    try:
        return bool(_CALLS) and platform.system() == "Linux" and live(lambda: None).status == 0
    except OSError:
        return False


def live(
    work: Callable[[], object],
    point: Point | None = None,
    witness: Callable[[bytes], object] | None = None,
    durable: Callable[[Path], object] | None = None,
) -> Life:
    """Run work in a forked child; without a point it lives to its end.

    Args:
        work: What the child does.
        point: Where it dies, or where the disk is full.
        witness: Shown every byte the child is about to write; on x86-64 alone.
        durable: Told of each file that the child has waited for to be on the disk.
    """
    sys.stdout.flush()
    told = os.memfd_create("trouble")
    child = _forked(work, told)
    patience = threading.Timer(PATIENCE, _give_up, (child, told))
    patience.start()
    try:
        return _followed(child, told, point, witness, durable)
    finally:
        patience.cancel()
        patience.join()
        os.close(told)


def _give_up(child: int, told: int) -> None:
    """End a child that hangs; it has then ended by a signal that nobody asked for."""
    os.write(told, f"it was ended after {PATIENCE} seconds".encode())
    os.kill(child, signal.SIGKILL)


def _forked(work: Callable[[], object], told: int) -> int:
    """A child that waits to be followed before it works."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        child = os.fork()
    if child == 0:
        _serve(work, told)
    os.waitpid(child, 0)
    return child


def _followed(
    child: int,
    told: int,
    point: Point | None,
    witness: Callable[[bytes], object] | None,
    durable: Callable[[Path], object] | None,
) -> Life:
    _ptrace(_SETOPTIONS, child, 0, _OPTIONS)
    _ptrace(_CONT, child, 0, 0)
    stops: list[str] = []
    while True:
        thread, status = os.waitpid(-1, _WALL)
        if os.WIFSIGNALED(status) or os.WIFEXITED(status):
            if thread == child:
                trouble = os.pread(told, 1 << 16, 0).decode(errors="replace")
                return Life(False, os.waitstatus_to_exitcode(status), tuple(stops), trouble)
        elif status >> 16 != _EVENT_SECCOMP:
            ours = os.WSTOPSIG(status) in (signal.SIGTRAP, signal.SIGSTOP)
            _ptrace(_CONT, thread, 0, 0 if ours else os.WSTOPSIG(status))
        else:
            stops.append(_kind(thread))
            if witness is not None and INTEL and stops[-1] in ("write", "pwrite"):
                witness(_written(thread))
            if durable is not None and stops[-1] in ("fsync", "fdatasync"):
                file = os.readlink(f"/proc/{thread}/fd/{_ptrace(_PEEKUSER, thread, _FIRST, 0)}")
                _finish_call(thread, half=False)
                durable(Path(file))
            if _dies(child, thread, point, stops):
                return Life(True, 0, tuple(stops))


def _dies(child: int, thread: int, point: Point | None, stops: list[str]) -> bool:
    """Do at a stop what the point asks for, and go on unless that was death."""
    here = len(stops) - 1
    if point is not None and point.moment.startswith("full"):
        past = here > point.stop and point.moment == "full" and stops[-1] in WRITES
        if here == point.stop or past:
            _refuse(thread)
    elif point is not None and point.stop == here:
        if point.moment != "before":
            _finish_call(thread, half=point.moment == "half")
        os.kill(child, signal.SIGKILL)
        _reap(child)
        return True
    _ptrace(_CONT, thread, 0, 0)
    return False


def _serve(work: Callable[[], object], told: int) -> None:
    """The child: be traced, filter calls, mark statements, work, and never return."""
    status = FOREIGN
    try:
        leave_behind()
        _ptrace(_TRACEME, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 2)
        sys.dont_write_bytecode = True  # a first life would write files that no later one writes
        _mark_statements()
        _install(_program())
        work()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:  # noqa: BLE001
        status = error.exit_code if isinstance(error, StreamdpError) else FOREIGN
        with suppress(OSError):
            os.write(told, traceback.format_exc().encode())
    finally:
        os._exit(status)


def _mark_statements() -> None:
    """Make the call that marks a statement whenever a connection is about to run one."""
    connect = sqlite3.connect

    def marking(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **named)
        connection.set_trace_callback(lambda statement: os.sched_get_priority_max(0))
        return connection

    sqlite3.connect = marking  # type: ignore[assignment]


def _finish_call(thread: int, *, half: bool) -> None:
    """Let the call that a thread is about to make happen, or the first half of a write."""
    if half:
        size = _ptrace(_PEEKUSER, thread, _SIZE, 0)
        _ptrace(_POKEUSER, thread, _SIZE, size // 2)
    _ptrace(_SYSCALL, thread, 0, 0)
    os.waitpid(thread, _WALL)


def _refuse(thread: int) -> None:
    """Skip the call a thread is about to make, and say that there is no space."""
    _ptrace(_POKEUSER, thread, _CALL, -1)
    _ptrace(_SYSCALL, thread, 0, 0)
    os.waitpid(thread, _WALL)
    _ptrace(_POKEUSER, thread, _ANSWER, -errno.ENOSPC)


def _written(thread: int) -> bytes:
    """What a thread is about to write."""
    with open(f"/proc/{thread}/mem", "rb", buffering=0) as memory:
        memory.seek(_ptrace(_PEEKUSER, thread, _BUFFER, 0))
        return memory.read(_ptrace(_PEEKUSER, thread, _SIZE, 0))


def _reap(child: int) -> None:
    """Wait until all threads of a killed child are gone."""
    while True:
        thread, status = os.waitpid(-1, _WALL)
        if thread == child and (os.WIFSIGNALED(status) or os.WIFEXITED(status)):
            return


def _kind(thread: int) -> str:
    """Name of the call a thread is about to make; the filter passes its number along."""
    message = ctypes.c_ulong()
    _ptrace(_GETEVENTMSG, thread, 0, ctypes.addressof(message))
    return _KINDS[message.value]


_KINDS = tuple(dict.fromkeys([*_CALLS.values(), "create"]))


def _program() -> bytes:
    """The filter: stop at the calls of the table, and at `openat` that may make a file."""
    load, equal, any_bit, answer = 0x20, 0x15, 0x45, 0x06
    allow, trace = 0x7FFF0000, 0x7FF00000
    program = [(load, 0, 0, 0)]
    for number, kind in _CALLS.items():
        program += [(equal, 0, 1, number), (answer, 0, 0, trace | _KINDS.index(kind))]
    program += [
        (equal, 0, 3, _OPENAT),
        (load, 0, 0, 32),
        (any_bit, 0, 1, _O_CREAT),
        (answer, 0, 0, trace | _KINDS.index("create")),
        (answer, 0, 0, allow),
    ]
    return b"".join(struct.pack("HBBI", *line) for line in program)


def _install(program: bytes) -> None:
    code = ctypes.create_string_buffer(program)
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    pointer = ctypes.create_string_buffer(header)
    if _libc.prctl(38, 1, 0, 0, 0) or _libc.prctl(22, 2, ctypes.byref(pointer), 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter")


def _ptrace(request: int, thread: int, address: int, data: int) -> int:
    ctypes.set_errno(0)
    result = int(_libc.ptrace(request, thread, address, data))
    if result == -1 and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), f"ptrace {request}")
    return result
