"""Rows of the fault table that no sweep and no other test meets."""

from __future__ import annotations

import resource
import sqlite3
from pathlib import Path

import pytest

from streamdp.cli import COMMANDS, cli
from streamdp.errors import StoreError
from streamdp.store import database
from tests.crash import tracer
from tests.crash.home import BATCHES, Home
from tests.worlds import EPSILON_NANO, World


def test_a_store_that_is_busy_charges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process writes and does not end: nothing is spent; when it ends the work goes on."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    world = World(tmp_path)
    other = sqlite3.connect(world.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked"):
        world.worker.round([world.job()])
    assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'reserve'") == 0
    other.execute("ROLLBACK")
    assert world.worker.round([world.job()]).released == 5
    other.close()


def test_a_long_reader_holds_nothing_up(tmp_path: Path) -> None:
    """Someone reads for hours: writers go on, and the reader sees what it saw."""
    world = World(tmp_path)
    reader = sqlite3.connect(world.path, isolation_level=None)
    reader.execute("BEGIN")
    before = reader.execute("SELECT count(*) FROM ledger").fetchone()
    assert world.worker.round([world.job()]).released == 5
    assert reader.execute("SELECT count(*) FROM ledger").fetchone() == before
    reader.close()


def test_a_clock_that_goes_back_runs_nothing_again(tmp_path: Path) -> None:
    """A month back and forth again: no window is released twice, and nothing more is charged."""
    world = World(tmp_path)
    world.worker.round([world.job()])
    for days in (-30, 31):
        world.clock.seconds += days * 86_400
        world.worker.round([world.job()])
    assert len(world.sink.taken) == 5
    assert world.count("SELECT sum(epsilon_nano) FROM ledger") == 5 * EPSILON_NANO


def test_a_file_that_comes_again_is_no_batch_and_another_is_refused(tmp_path: Path) -> None:
    """The same bytes again are the same batch; other bytes under a known key are refused."""
    home = Home.furnish(tmp_path / "home")
    assert home.live().released == BATCHES
    file = home.path / "drops" / "a.csv"
    file.write_bytes(file.read_bytes())
    assert home.live("second").released == 0
    fresh = home.path / "drops" / "c.csv"
    fresh.write_text("x\n1\n")
    (home.path / "config.yaml").write_text(
        (home.path / "config.yaml").read_text().replace("  parts:", "  again:")
    )
    file.write_text("x\n50\n60\n70\n")
    outcomes = home.live("third")
    assert [error.code for error in outcomes.errors] == ["batch-altered"]
    assert outcomes.released == 2


@pytest.mark.skipif(not tracer.supported(), reason="a child cannot be traced here")
def test_a_crash_leaves_no_core(tmp_path: Path) -> None:
    """A process that works may not dump its memory, which holds private counts."""
    home = Home.furnish(tmp_path / "home")

    def work() -> None:
        home.live()
        raise SystemExit(resource.getrlimit(resource.RLIMIT_CORE) != (0, 0))

    assert tracer.live(work).status == 0


def test_no_option_seeds_a_release() -> None:
    """No command that releases has a word for a seed: there is no way to fix the noise."""
    for name in set(COMMANDS) - {"simulate"}:
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        words = [option for parameter in command.params for option in parameter.opts]
        assert not any("seed" in word for word in words), name
