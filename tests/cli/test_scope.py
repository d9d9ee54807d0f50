"""A budget belongs to the data: edits of the configuration open no fresh one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from streamdp.errors import ConfigurationError
from tests.cli.test_commands import home, released, typed
from tests.cli.test_recovery import WHO, lifetime

__all__ = ["home", "released"]

FLIGHTS = Path(__file__).parents[2] / "streamdp" / "demo" / "flights.parquet"


@pytest.fixture
def edit(home: Path) -> Callable[..., None]:
    """A source of its own file, released; then a tool to change the configuration."""
    shutil.copy(FLIGHTS, home / "data.parquet")
    path = home / "config.yaml"
    path.write_text(path.read_text().replace("demo:flights.parquet", "data.parquet"))
    assert typed("run", "--once").exit_code == 0

    def change(*edits: tuple[str, str]) -> None:
        text = path.read_text()
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)

    return change


def refused() -> str:
    """What a run says that spends nothing."""
    before = lifetime()
    result = typed("run", "--once")
    assert isinstance(result.exception, ConfigurationError), result.output
    assert lifetime() == before
    return str(result.exception)


RENAMED = (("  flights:", "  fresh:"), ("source: flights", "source: fresh"))


def test_a_renamed_source_gets_no_fresh_budget(edit: Callable[..., None]) -> None:
    """The old name is told; under it the run goes on."""
    edit(*RENAMED)
    assert "budget is that of flights" in refused()
    edit(*((new, old) for old, new in RENAMED))
    assert typed("run", "--once").exit_code == 0


def test_a_source_renamed_after_its_store_was_lost_gets_no_fresh_budget(
    edit: Callable[..., None], home: Path
) -> None:
    """What reconciles the charges says what they were spent on, before anything runs."""
    for part in home.glob("streamdp.db*"):
        if part.suffix != ".anchor":
            part.unlink()
    edit(*RENAMED)
    lost = typed("reconcile", "--assume-spent", *WHO)
    assert "charges of flights, which is not configured" in str(lost.exception)
    edit(*((new, old) for old, new in RENAMED))
    assert typed("reconcile", "--assume-spent", *WHO).exit_code == 0
    edit(*RENAMED)
    assert "budget is that of flights" in refused()


def test_a_name_under_which_nothing_was_spent_binds_nobody(home: Path) -> None:
    """A source may be renamed until it has spent something."""
    path = home / "config.yaml"
    text = path.read_text()
    assert typed("pause", "air_time").exit_code == 0
    assert "0 released" in typed("run", "--once").output
    assert typed("resume", "air_time").exit_code == 0
    for old, new in RENAMED:
        text = text.replace(old, new)
    path.write_text(text)
    assert typed("run", "--once").exit_code == 0
    assert lifetime_of("fresh") == "1"


def lifetime_of(scope: str) -> str:
    rows = [json.loads(line) for line in typed("budget", "--json").stdout.splitlines()]
    return str(next(row["lifetime_exact"] for row in rows if row.get("scope") == scope))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("way", ["link", "hard", "dots", "pattern", "folder"])
def test_an_aliased_path_gets_no_fresh_budget(
    edit: Callable[..., None], home: Path, way: str
) -> None:
    """A link, a hard link, a folder that is a link, another way to write it, a pattern of it."""
    (home / "link.parquet").symlink_to(home / "data.parquet")
    (home / "hard.parquet").hardlink_to(home / "data.parquet")
    (home / "folder").symlink_to(home)
    new = {
        "link": "link.parquet",
        "hard": "hard.parquet",
        "dots": "./folder/../data.parquet",
        "pattern": "data*.parquet",
        "folder": "folder/data.parquet",
    }[way]
    edit(*RENAMED, ("path: data.parquet", f"path: {new}"))
    assert "budget is that of flights" in refused()


def test_a_moved_source_goes_on_by_a_persons_word(edit: Callable[..., None], home: Path) -> None:
    """Refused until the ledger has it; the old place stays its own, so nobody else gets it."""
    shutil.move(home / "data.parquet", home / "moved.parquet")
    edit(("path: data.parquet", "path: moved.parquet"))
    assert "--moved" in refused()
    assert typed("source", "flights", "--moved", *WHO).exit_code == 0
    assert typed("run", "--once").exit_code == 0
    assert lifetime() == "1"
    shutil.copy(home / "moved.parquet", home / "data.parquet")
    edit(*RENAMED, ("path: moved.parquet", "path: data.parquet"))
    assert "budget is that of flights" in refused()
    stolen = typed("source", "fresh", "--moved", *WHO)
    assert isinstance(stolen.exception, ConfigurationError)


def test_another_time_column_is_a_persons_word(edit: Callable[..., None]) -> None:
    """Cut by another column a record is in another batch, so that it would pay from two caps."""
    edit(("column: date\n", "column: time_hour\n"))
    assert "another column" in refused()


def test_a_renamed_job_shares_the_budget(edit: Callable[..., None]) -> None:
    """A scope is the source: a job under a new name pays from what is left of each batch."""
    edit(("  air_time:", "  renamed:"), ("epsilon: 0.1 ", "epsilon: 0.25 "))
    result = typed("run", "--once")
    assert result.exit_code == 3
    assert "10 refused" in result.output
    assert lifetime() == "1"


def test_shipped_data_is_known_by_its_word(released: Path) -> None:
    """Its path is that of the installation, which may change."""
    path = released / "config.yaml"
    text = path.read_text().replace("demo:flights.parquet", str(FLIGHTS))
    path.write_text(text)
    assert typed("run", "--once").exit_code == 0
