"""Forked children of a test: each ends whatever happens, and says what it ended in."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

FOREIGN = 70
"""Exit code of a child that ended in an exception."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended.

    Args:
        code: Its exit code; the signal that killed it, negative.
        said: What its work returned, or None.
        trace: Traceback of the exception it ended in, or nothing.
    """

    code: int
    said: Any
    trace: str

    def require(self, *codes: int) -> Any:
        """What the child's work returned; an error with its traceback if it ended otherwise."""
        assert self.code in codes, f"a child ended with {self.code}\n{self.trace}"
        return self.said


def leave_behind() -> None:
    """In a child: never collect what the parent left, whose threads this process does not have.

    An engine that is closed here waits for threads whose stacks are those of others by now.
    """
    gc.freeze()


def in_child(work: Callable[[], object]) -> Ending:
    """Do some work in a forked child, which never returns to the test that forked it."""
    readable, writable = os.pipe()
    child = _fork()
    if child == 0:
        os.close(readable)
        _serve(work, writable)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        text = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said, trace = json.loads(text) if text else (None, "")
    return Ending(code, said, trace)


def program(main: Callable[[], object], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program as a process of its own, forked: it need not import again what is imported."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        child = _fork()
        if child == 0:
            _run(main, arguments, (out.fileno(), errors.fileno()))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said = []
        for file in (out, errors):
            file.seek(0)
            said.append(file.read().decode())
        return subprocess.CompletedProcess(arguments, code, *said)


def _run(
    main: Callable[[], object], arguments: tuple[str, ...], files: tuple[int, int]
) -> NoReturn:
    """Be a fresh process as far as its program sees, and end as Python ends one."""
    code = 1
    try:
        leave_behind()
        for number, file in enumerate(files, 1):
            os.dup2(file, number)
        sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
        sys.argv = ["program", *arguments]
        sys.unraisablehook = sys.__unraisablehook__
        warnings.simplefilter("ignore")
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _fork() -> int:
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _serve(work: Callable[[], object], pipe: int) -> None:
    code, report = FOREIGN, b""
    try:
        leave_behind()
        report = json.dumps([work(), ""]).encode()
        code = 0
    except BaseException:  # noqa: BLE001
        report = json.dumps([None, traceback.format_exc()[-20_000:]]).encode()
    finally:
        try:
            with os.fdopen(pipe, "wb") as file:
                file.write(report)
        finally:
            os._exit(code)
