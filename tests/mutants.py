"""Mistakes in ledger, anchor, outbox and sources, and the tests that find them."""

from __future__ import annotations

import importlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tests.children import Ending, in_child

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "streamdp"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mistake: one text of a module in the place of another.

    Args:
        what: The mistake, in words.
        file: Of the module, below the package.
        old: Text that stands once in it.
        new: What the mistake has there.
        tests: Which of the fault table find it, by file and name.
    """

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def plant(self) -> int:
        """Give the functions of the module, wherever they are known, the mistaken code.

        Returns:
            How many functions have changed.
        """
        module = importlib.import_module(f"streamdp.{self.file[:-3].replace('/', '.')}")
        text = (PACKAGE / self.file).read_text()
        assert text.count(self.old) == 1, f"{self.what}: {self.file} has not one {self.old!r}"
        mistaken = compile(text.replace(self.old, self.new), str(PACKAGE / self.file), "exec")
        return _replace(vars(module), mistaken)


def _replace(names: object, mistaken: CodeType) -> int:
    """Replace the code of functions, and of the functions of classes, by that of the same name."""
    assert hasattr(names, "get")
    changed = 0
    for code in (each for each in mistaken.co_consts if isinstance(each, CodeType)):
        found = names.get(code.co_name)
        if isinstance(found, type):
            changed += _replace(vars(found), code)
            continue
        found = getattr(found, "__wrapped__", getattr(found, "__func__", found))
        if isinstance(found, FunctionType) and found.__code__ != code:
            found.__code__ = code
            changed += 1
    return changed


def mutants() -> list[Mutant]:
    """The mistakes of the table."""
    found = tomllib.loads((HERE / "faults.toml").read_text())["mutant"]
    return [Mutant(**{**each, "tests": tuple(each["tests"])}) for each in found]


def failed(mutant: Mutant | None, tests: tuple[str, ...]) -> list[str]:
    """Names of the tests that fail where a mistake is planted, or as the code is."""
    ended: Ending = in_child(lambda: _run(mutant, tests))
    found = ended.require(0)
    assert isinstance(found, list)
    return found


def _run(mutant: Mutant | None, tests: tuple[str, ...]) -> list[str]:
    if mutant is not None:
        assert mutant.plant() > 0, f"{mutant.what}: no function has changed"
    heard = Listener()
    ran = [str(HERE / test) for test in tests]
    plain = ["-q", "-m", "", "-W", "ignore", "-p", "no:cacheprovider", "-p", "no:randomly"]
    code = pytest.main([*plain, *ran], plugins=[heard])
    assert code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), code
    assert heard.ran >= len(tests)
    return sorted(heard.failed)


class Listener:
    """Hears which tests fail in their call, by file and name."""

    def __init__(self) -> None:
        self.ran, self.failed = 0, set[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the name of a test that ran."""
        if report.when == "call":
            self.ran += 1
            if report.failed:
                self.failed.add(report.nodeid.removeprefix("tests/").partition("[")[0])
