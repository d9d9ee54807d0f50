"""What orchestrators go by: exit codes, as the adapters and their page say them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from streamdp.cli import EXIT_CODES
from streamdp.config import load

DEPLOY = Path(__file__).parents[2] / "deploy"
CODES = {int(line.split()[0]): line for line in EXIT_CODES.splitlines()[2:]}
ADAPTERS = sorted((DEPLOY / "orchestrators").glob("*.py"))


def constants(adapter: Path) -> dict[str, object]:
    """Literals of a module, read without importing what it imports."""
    return {
        statement.targets[0].id: ast.literal_eval(statement.value)
        for statement in ast.parse(adapter.read_text()).body
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda path: path.stem)
def test_an_adapter_knows_what_no_retry_mends(adapter: Path) -> None:
    """Wrong configuration and a damaged store; a cap that is reached is no failure."""
    found = constants(adapter)
    fatal = found["FATAL"]
    assert isinstance(fatal, dict | tuple)
    assert [CODES[code].split(None, 1)[1].split()[:2] for code in fatal] == [
        ["wrong", "usage"],
        ["the", "store"],
    ]
    assert "a cap is reached" in CODES[int(str(found["CAP_REACHED"]))]


def test_the_page_has_every_exit_code() -> None:
    page = (DEPLOY / "docs" / "how-to" / "orchestrators.md").read_text()
    assert {int(code) for code in re.findall(r"^\| (\d) \|", page, re.MULTILINE)} == set(CODES)


def test_the_configuration_beside_dbt_is_valid() -> None:
    """Also where dbt is not installed."""
    load(DEPLOY / "dbt" / "config.yaml")
