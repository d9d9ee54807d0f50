"""A forked child of a test ends whatever happens, and reports."""

import ast
import gc
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.children import FOREIGN, in_child, program

ROOT = Path(__file__).parent


def test_a_child_ends_and_reports() -> None:
    """What it returns, the exception it ends in, the signal that kills it, the code it chose."""
    assert in_child(lambda: [1, "x"]).require(0) == [1, "x"]
    failed = in_child(lambda: 1 // 0)
    assert failed.code == FOREIGN
    assert "ZeroDivisionError" in failed.trace
    assert in_child(lambda: sys.exit(3)).code == FOREIGN
    assert in_child(lambda: os._exit(9)).code == 9
    killed = in_child(lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(AssertionError, match="ended with -9"):
        killed.require(0)


@pytest.mark.parametrize(
    ("ending", "code", "last"),
    [
        (lambda: None, 0, ""),
        (lambda: sys.exit(3), 3, ""),
        (lambda: sys.exit("no"), 1, "no"),
        (lambda: 1 // 0, 1, "ZeroDivisionError: integer division or modulo by zero"),
    ],
)
def test_a_program_ends_as_python_ends_one(
    ending: Callable[[], object], code: int, last: str
) -> None:
    """Its code, what it printed, what it complained of, and the traceback of its exception."""

    def main() -> None:
        print(sys.argv[1:])
        print("first", file=sys.stderr)
        ending()

    ran = program(main, "-x", "y")
    assert (ran.returncode, ran.stdout) == (code, "['-x', 'y']\n")
    assert ran.stderr.splitlines()[0] == "first"
    assert ran.stderr.splitlines()[-1] == (last or "first")
    assert ("Traceback" in ran.stderr) == ("Error" in last)


def test_a_child_does_not_close_what_its_parent_left() -> None:
    """An engine in a cycle, as tests leave them: closed in a child, it waits for no thread."""
    gc.collect()
    gc.disable()
    try:
        left: list[object] = [duckdb.connect()]
        left.append(left)
        del left

        def work() -> int:
            signal.alarm(60)
            gc.collect()
            return duckdb.connect().execute("SELECT 7").fetchall()[0][0]  # type: ignore[no-any-return]

        assert in_child(work).require(0) == 7
    finally:
        gc.enable()


def test_every_fork_of_the_tests_ends_its_child() -> None:
    """Whoever forks has an `os._exit` in a `finally` of the same file."""
    forking = [path for path in ROOT.rglob("*.py") if "os.fork()" in path.read_text()]
    assert len(forking) >= 3
    for path in forking:
        if path == Path(__file__):
            continue
        found = ast.walk(ast.parse(path.read_text()))
        tries = [node for node in found if isinstance(node, ast.Try)]
        last = [ast.unparse(each) for node in tries for each in node.finalbody]
        assert any("os._exit(" in text for text in last), path
        assert "leave_behind()" in path.read_text(), path
