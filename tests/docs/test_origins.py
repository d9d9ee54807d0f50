"""The table of what was asked for names files, keys, tests, benchmarks and pages that are there."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from streamdp.config import json_schema
from tests.docs.blocks import DOCS, ROOT

PAGE = DOCS / "explanation" / "architecture.md"
TITLE = "## What was asked for, and where it is"
NAMES = ("asked for", "code", "key", "test", "benchmark", "page")
FIXED = {"numpy", "scipy", "apscheduler", "pyyaml", "structlog", "sqlite-utils"}


def rows(text: str) -> list[dict[str, str]]:
    """Rows of the table by the names of their columns."""
    table = text.split(TITLE)[1].split("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert tuple(cells[0]) == NAMES
    return [dict(zip(NAMES, each, strict=True)) for each in cells[2:]]


def missing(row: dict[str, str], keys: set[str]) -> list[str]:
    """What a row names that is not there."""
    found = [
        path
        for name in ("code", "test", "benchmark")
        for path in re.findall(r"`([^`]+)`", row[name])
        if not (ROOT / path).exists()
    ]
    found += [key for key in re.findall(r"`([^`]+)`", row["key"]) if key not in keys]
    pages = re.findall(r"\]\(([^)]+)\)", row["page"])
    return found + [page for page in pages if not (PAGE.parent / page).exists()]


def keys() -> set[str]:
    """`Section.key` of every key of the configuration."""
    definitions: dict[str, Any] = json_schema()["$defs"]
    return {
        f"{name.rsplit('__', 1)[-1]}.{key}"
        for name, each in definitions.items()
        for key in each.get("properties", ())
    }


def test_what_is_to_be_changed_is_where_the_page_says() -> None:
    """Each file of the table for newcomers exists."""
    table = PAGE.read_text().split("## To change something")[1].split("\n## ")[0]
    paths = re.findall(r"`(streamdp/[^`]+)`", table)
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_all_that_was_asked_for_is_where_the_table_says() -> None:
    """Every file, key, test, benchmark and page exists, and no cell is empty but with a dash."""
    known = keys()
    found = rows(PAGE.read_text())
    assert [missing(row, known) for row in found] == [[] for _ in found]
    for row in found:
        assert all("`" in row[name] for name in ("code", "test")), row
        assert all(row.values()), row


def test_the_table_has_the_sentence_and_every_fixed_package() -> None:
    """Priors, descent, surrogate, thresholding, budgets and the six packages each have a row."""
    asked = " ".join(row["asked for"].lower() for row in rows(PAGE.read_text()))
    for words in ("quantile priors", "online gradient descent", "censored-regression surrogate"):
        assert words in asked
    assert "generalized thresholding mechanism" in asked
    assert {name for name in FIXED if name in asked} == FIXED
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[<>=\[]", each)[0] for each in project["dependencies"]}
    assert needed >= FIXED


@pytest.mark.parametrize("name", ["code", "key", "test", "benchmark"])
def test_what_is_not_there_is_found(name: str) -> None:
    """One wrong name in any column is reported."""
    row = rows(PAGE.read_text())[0] | {name: "`no/such.thing`"}
    assert missing(row, keys()) == ["no/such.thing"]
