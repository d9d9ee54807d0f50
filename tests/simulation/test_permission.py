"""A table that a production source reads is refused, however it is spelt."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streamdp.errors import ConfigurationError
from streamdp.simulation.table import require_no_production_table


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Production below `data`, a public table beside it, and links to both."""
    (tmp_path / "data" / "deep").mkdir(parents=True)
    for name in ("a.csv", ".hidden.csv", "deep/b.csv"):
        (tmp_path / "data" / name).write_text("x\n1\n")
    (tmp_path / "public.csv").write_text("x\n2\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "data" / "a.csv")
    (tmp_path / "folder").symlink_to(tmp_path / "data")
    os.link(tmp_path / "data" / "a.csv", tmp_path / "hard.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SOURCES = ("data/a.csv", "data/*.csv", "data/**/*.csv", "dat?/[a]*.csv", "link.csv", "folder/*")

SPELT = (
    *("data/a.csv", "./data/../data/a.csv", "link.csv", "hard.csv", "folder/a.csv"),
    *("*/a.csv", "data/*.csv", "**/a.csv", "*.csv", "data", "folder", "."),
)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("table", SPELT)
def test_production_is_refused(folder: Path, source: str, table: str) -> None:
    """By another path, a link of either kind, a glob that holds it, or a folder above it."""
    with pytest.raises(ConfigurationError, match="source flights") as error:
        require_no_production_table(table, {"other": "none.csv", "flights": str(folder / source)})
    assert "--truth-may-be-seen" in error.value.hint


def test_hidden_files_are_files(folder: Path) -> None:
    """An engine's glob may read what a shell's does not."""
    with pytest.raises(ConfigurationError):
        require_no_production_table("data/.hidden.csv", {"s": str(folder / "data" / "*.csv")})


def test_a_path_that_is_not_there_yet_is_refused_if_it_is_the_sources(folder: Path) -> None:
    """The source may wait for its first file."""
    with pytest.raises(ConfigurationError):
        require_no_production_table("soon.csv", {"s": str(folder / "soon.csv")})


@pytest.mark.parametrize("source", SOURCES[:4])
@pytest.mark.parametrize("table", ["public.csv", "pub*.csv", "data/deep/none.csv"])
def test_others_are_admitted(folder: Path, source: str, table: str) -> None:
    """A table of which no source reads a file."""
    require_no_production_table(table, {"flights": str(folder / source)})
