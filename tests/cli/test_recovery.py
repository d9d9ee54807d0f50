"""Backup, restore, reconcile, adopt and verify, as a person types them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
import yaml

from streamdp.errors import IntegrityError, StreamdpError
from streamdp.store.anchor import on_one_volume
from tests.cli.test_commands import home, process, released, typed
from tests.store.test_upgrade import FIXTURES, written
from tests.worlds import World

__all__ = ["home", "released"]

WHO = ("--operator", "me", "--reason", "a disk died")


def states(*command: str) -> dict[str, str]:
    rows = [json.loads(line) for line in typed(*command, "--json").stdout.splitlines()]
    return {row["check"]: row["state"] for row in rows}


def lifetime() -> str:
    return str(json.loads(typed("budget", "--json").stdout)["lifetime_exact"])


def test_a_backup_is_put_back_and_reconciled(released: Path) -> None:
    """What was released since the backup stays spent; the refused start says what to type."""
    assert typed("backup", "b.db").exit_code == 0
    path = released / "config.yaml"
    path.write_text(path.read_text().replace("2013-01-11", "2013-01-14"))
    assert "3 released" in typed("run", "--once").output
    assert "there is no such copy" in str(typed("restore", "c.db", "--yes").exception)
    told = typed("restore", "b.db", "--yes").output
    assert "0.3 was spent since" in told
    refused = process("run", "--once")
    assert refused.returncode == 6
    assert "`streamdp reconcile --assume-spent --operator NAME --reason TEXT`" in refused.stderr
    assert "error (integrity)" in refused.stderr
    assert typed("verify").exit_code == 6
    for claim in ("statement", "budget"):
        assert isinstance(typed(claim).exception, IntegrityError)
    assert "charged 0.3" in typed("reconcile", "--assume-spent", *WHO).output
    assert lifetime() == "1.3"
    assert set(states("verify").values()) == {"ok"}
    rows = [json.loads(line) for line in typed("budget", "--ledger", "--json").stdout.splitlines()]
    (note,) = [row for row in rows if row["decided"] == "reconciled"]
    assert (note["by"], note["reason"]) == ("me", "a disk died")
    assert "3 released" in typed("run", "--once").output
    assert lifetime() == "1.6"
    assert typed("doctor").exit_code == 0


def test_doctor_says_that_the_store_of_an_anchor_is_gone(released: Path) -> None:
    """As `run` does, which does not make it."""
    for name in ("streamdp.db", "streamdp.db-wal", "streamdp.db-shm"):
        (released / name).unlink(missing_ok=True)
    assert states("doctor")["store"] == "WRONG"
    assert "its anchor is there" in typed("doctor").output


def test_a_copy_of_another_store_is_not_put_back(released: Path) -> None:
    """Its charges are none of this one's: nothing is asked, nothing is replaced."""
    other = World(released / "other", make=True).path
    before = sorted(path.name for path in released.iterdir())
    refused = typed("restore", str(other), "--yes")
    assert isinstance(refused.exception, IntegrityError)
    assert "another store" in str(refused.exception)
    assert sorted(path.name for path in released.iterdir()) == before


def test_reconcile_says_who_and_that_it_is_spent(released: Path) -> None:
    """Without the words --assume-spent, a name and a reason there is nothing but the usage."""
    for left_out in (WHO[:2], WHO[2:]):
        assert typed("reconcile", "--assume-spent", *left_out).exit_code == 2
    assert typed("reconcile", *WHO).exit_code == 2


def test_a_recovery_that_is_run_again_does_nothing(released: Path) -> None:
    """Where ledger and anchor agree nothing is charged or written, and that is no failure."""
    for command in (("reconcile", "--assume-spent"), ("anchor", "adopt", "--yes")):
        before = [(released / name).read_bytes() for name in ("streamdp.db", "streamdp.db.anchor")]
        agreeing = typed(*command, *WHO)
        assert agreeing.exit_code == 0, agreeing.output
        assert "nothing is charged" in agreeing.output
        after = [(released / name).read_bytes() for name in ("streamdp.db", "streamdp.db.anchor")]
        assert after == before


def test_an_anchor_on_another_volume_is_lost_and_adopted(home: Path) -> None:
    """The anchor is where the configuration says; without it nothing starts until it is adopted."""
    (home / "volume").mkdir()
    path = home / "config.yaml"
    text = path.read_text().replace("path: streamdp.db", "path: streamdp.db\n  anchor: volume/a")
    path.write_text(text)
    assert typed("run", "--once").exit_code == 0
    assert not (home / "streamdp.db.anchor").exists()
    (home / "volume" / "a").unlink()
    assert process("run", "--once").returncode == 6
    assert states("doctor")["store"] == "WRONG"
    assert typed("anchor", "adopt", *WHO).exit_code != 0, "it asks"
    assert typed("anchor", "adopt", "--yes", *WHO).exit_code == 0
    assert typed("run", "--once").exit_code == 0
    assert (home / "volume" / "a").stat().st_mode & 0o777 == 0o600


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("said", "charged", "after"),
    [((), "1.9", 0), (("--spent", "flights=0.2"), "1.2", 3), (("--spent", "air_time=0"), "1", 3)],
)
def test_a_copy_is_put_back_and_the_anchor_is_gone(
    released: Path, said: tuple[str, ...], charged: str, after: int
) -> None:
    """Each command names the next; what is charged was shown, and bounds what was spent."""
    typed("backup", "b.db")
    path = released / "config.yaml"
    path.write_text(path.read_text().replace("2013-01-11", "2013-01-14"))
    assert "3 released" in typed("run", "--once").output
    (released / "streamdp.db.anchor").unlink()
    told = typed("restore", "b.db", "--yes").output
    assert "nobody knows what was spent since" in told
    assert "anchor adopt" in told.splitlines()[-1]
    assert "anchor adopt" in str(typed("run", "--once").exception)
    unknown = typed("anchor", "adopt", "--yes", "--spent", "nothing=1", *WHO)
    assert "names no source" in str(unknown.exception)
    shown = typed("anchor", "adopt", "--yes", *said, *WHO).output
    assert "since" in shown
    assert lifetime() == charged
    assert f"{after} released" in typed("run", "--once").output
    assert set(states("verify").values()) == {"ok"}


@pytest.mark.parametrize("file", ["streamdp.db", "streamdp.db.anchor"])
def test_a_file_of_the_store_is_no_sink(home: Path, file: str) -> None:
    """Neither the store nor its anchor can be written to by a sink."""
    path = home / "config.yaml"
    path.write_text(path.read_text().replace("path: releases.jsonl", f"path: {file}"))
    assert typed("validate").exit_code != 0


@pytest.mark.parametrize("fixture", [FIXTURES[0], FIXTURES[-1]], ids=lambda each: each.stem)
def test_a_store_of_an_earlier_version_is_looked_at_and_left_alone(
    home: Path, fixture: Path
) -> None:
    """Doctor says what will happen, verify what to do, a backup is made; nothing is migrated."""
    store = written(fixture, home).rename(home / "streamdp.db")
    anchor = home / "store.db.anchor"
    if anchor.exists():
        anchor.rename(home / "streamdp.db.anchor")
    store.chmod(0o600)
    path = home / "config.yaml"
    step = "path: streamdp.db\n  max_clock_step: 20000d"
    path.write_text(path.read_text().replace("path: streamdp.db", step))
    before = store.read_bytes()
    assert set(states("doctor").values()) <= {"ok", "warning"}
    assert "upgrade pending" in typed("doctor").output
    anchored = (home / "streamdp.db.anchor").exists()  # the first schemas had none: no claim then
    for command in ("doctor", "status", "releases", *(["budget"] if anchored else [])):
        assert typed(command).exit_code == 0, command
    assert isinstance(typed("verify").exception, StreamdpError)
    assert typed("backup", "b.db").exit_code == 0
    assert store.read_bytes() == before


def test_a_backup_without_a_path_goes_where_the_configuration_says(released: Path) -> None:
    """Without the section it asks for a path; a folder that is not there is named as it is."""
    assert "section `backup`" in typed("backup").output
    missing = typed("backup", "nowhere/b.db")
    assert isinstance(missing.exception, StreamdpError)
    assert str(missing.exception.where).endswith("nowhere")
    assert ".b.db." not in str(missing.exception)
    path = released / "config.yaml"
    path.write_text(path.read_text() + "backup: {path: copies, every: 1h, keep: 1}\n")
    assert typed("backup").exit_code == 0
    (first,) = (released / "copies").iterdir()
    typed("pause", "air_time")
    typed("run", "--once")
    assert [first] == list((released / "copies").iterdir())


def test_init_takes_another_place_for_the_anchor(tmp_path: Path) -> None:
    """It stands in the configuration; a place on the store's volume is warned of, as by doctor."""
    anchor = tmp_path / "other volume" / "anchor"
    anchor.parent.mkdir()
    result = typed("init", str(tmp_path / "new"), "--anchor", str(anchor))
    assert "is on the volume of" in result.output
    said = yaml.safe_load((tmp_path / "new" / "config.yaml").read_text())
    assert said["store"] == {"path": "streamdp.db", "anchor": str(anchor)}


def test_an_anchor_on_the_volume_of_the_store_is_warned_of(home: Path) -> None:
    """It stops nothing; on another device nobody is warned."""
    assert states("doctor")["anchor"] == "warning"
    assert typed("doctor").exit_code == 0
    assert "on one volume" in typed("validate").output
    assert not on_one_volume(home / "s", Path("/proc/anchor"))


@pytest.mark.parametrize(
    ("kind", "named"), [("nfs4", "nfs4"), ("fuse.sshfs", "fuse.sshfs"), ("ext4", ""), ("tmpfs", "")]
)
def test_a_store_that_several_hosts_may_share_is_warned_of(
    home: Path, monkeypatch: pytest.MonkeyPatch, kind: str, named: str
) -> None:
    """SQLite cannot be opened from two hosts; it stops nothing."""
    device = home.stat().st_dev
    mounts = home / "mounts"
    monkeypatch.setattr("streamdp.disk.MOUNTS", mounts)
    place = f"{os.major(device)}:{os.minor(device)}"
    mounts.write_text(f"36 35 0:1 / / rw - nfs a rw\n37 35 {place} / {home} rw - {kind} h:/x rw\n")
    assert (f"the store is on {named}," in typed("validate").output) == bool(named)
    assert states("doctor")["store folder"] == ("warning" if named else "ok")
    mounts.unlink()
    assert typed("doctor").exit_code == 0


@pytest.mark.usefixtures("released")
def test_a_clock_that_was_ahead_is_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command that a person or a supervisor asks fails, until the clock is accepted."""
    now = time.time()
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time", lambda: now + 4000 * 86_400)
        assert typed("run", "--once", "--accept-clock").exit_code == 0
    for command in (("run", "--once"), ("status",), ("doctor",)):
        result = typed(*command)
        assert result.exit_code == 1
        assert "behind" in result.output, command
    assert typed("run", "--once", "--accept-clock").exit_code == 0
    for command in (("run", "--once"), ("status",), ("doctor",)):
        assert typed(*command).exit_code == 0, command
