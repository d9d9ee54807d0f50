"""What can go wrong, and the test that shows what happens then: one row a fault.

python -m tests.faults [--json]
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.report import Row, main

ROOT = Path(__file__).parent


def faults() -> list[dict[str, object]]:
    """The table: number, fault, tests by file and name, and where it is judged otherwise, why."""
    return list(tomllib.loads((ROOT / "faults.toml").read_text())["fault"])


def rows(quick: bool) -> Iterator[Row]:
    """The table as it is printed."""
    for fault in faults():
        tests = fault["tests"]
        assert isinstance(tests, list)
        yield {
            "row": str(fault["row"]),
            "fault": str(fault["what"]),
            "tests": "\n".join(tests),
            "judged": str(fault.get("judged", "")),
        }


def is_there(test: str) -> bool:
    """Whether a file has a test of that name."""
    file, _, name = test.partition("::")
    path = ROOT / file
    if not (name.startswith("test_") and path.exists()):
        return False
    found = ast.walk(ast.parse(path.read_text()))
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in found)


if __name__ == "__main__":
    main("What can go wrong, and its tests", rows)
