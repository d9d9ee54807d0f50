"""README and documentation are true: what they name exists. Their blocks: `tests/docs`."""

import contextlib
import io
import os
import re
import runpy
import sys
from pathlib import Path

import pytest

from tests.children import in_child

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "deploy" / "docs"
README = (ROOT / "README.md").read_text()
MEASURED = (DOCS / "explanation" / "measured.md").read_text()
ARCHITECTURE = (DOCS / "explanation" / "architecture.md").read_text()


def test_the_two_commands_are_there_once() -> None:
    """One line installs and runs, one installs and tests; `.ci/run` finds the second."""
    lines = [line for line in README.splitlines() if line.startswith("python3 -m venv")]
    assert len(lines) == 2
    assert "streamdp run --once" in lines[0]
    assert lines[1].endswith(".venv/bin/pytest -n auto")


def test_it_takes_five_minutes() -> None:
    """It stays short; what is longer stands in `deploy/docs`."""
    assert len(README.splitlines()) <= 130


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)\)", README))
def test_links_lead_to_files(target: str) -> None:
    """Every relative link is a file of the repository."""
    if not target.startswith("http"):
        assert (ROOT / target).exists()


@pytest.mark.parametrize("module", re.findall(r"^python -m (tests\.\S+)", MEASURED, re.MULTILINE))
def test_benchmarks_it_names_can_be_called(module: str) -> None:
    """Each says its help."""

    def called() -> str:
        said, sys.argv = io.StringIO(), [module, "--help"]
        os.chdir(ROOT)
        for imported in (module, f"{module}.__main__"):  # by another test, which runpy warns of
            sys.modules.pop(imported, None)
        with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
            runpy.run_module(module, run_name="__main__")
        return said.getvalue()

    said = in_child(called).require(0)
    assert "--json" in said
    assert "--quick" in said


def test_folders_of_the_architecture_are_all_folders() -> None:
    """The table names every room of the package, and no other."""
    named = set(re.findall(r"`([a-z]+)/?`", ARCHITECTURE))
    rooms = {
        path.name.removesuffix(".py")
        for path in (ROOT / "streamdp").iterdir()
        if not path.name.startswith("_") and path.name not in ("py.typed", "CHANGELOG.md", "demo")
    }
    assert rooms <= named


def test_the_demo_data_are_small() -> None:
    """The shipped flights stay under 2 MB."""
    assert (ROOT / "streamdp" / "demo" / "flights.parquet").stat().st_size < 2_000_000
