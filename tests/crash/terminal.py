"""Commands as a person types them, in a child whose every written byte is seen."""

from __future__ import annotations

import math
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

from streamdp import files
from streamdp.cli import main, run
from streamdp.daemon.runtime import SystemClock
from streamdp.engine.release import RELEASE_ID_BITS
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.reports.releases import suspicion
from streamdp.store import migrations
from streamdp.store.sqlite import SqliteStore
from tests.crash import tracer
from tests.worlds import START, ReplayedEntropy

COMMANDS = (
    *("validate", "doctor", "plan --days 3", "run --once", "run --once", "status", "status --json"),
    *("releases", "releases --json", "budget", "budget --ledger --json", "logs"),
)
"""What is typed, in this order."""


def typed(
    folder: Path, command: str, forced: str | None = None, witness: Callable[[bytes], object] = len
) -> tuple[int, bytes, tuple[str, ...]]:
    """Type one command; returns its exit code, what it printed, and its calls to the kernel.

    Args:
        folder: Where.
        command: Without the word `streamdp`.
        forced: Seed of all its chance; with one, its clock and process number stand still too.
        witness: Shown every byte it writes, wherever to.
    """
    shown = folder.parent / f"{folder.name}.terminal"

    def work() -> None:
        for known in (migrations._made, suspicion._kept):
            known.cache_clear()  # what this process knows already is no trace of records
        os.chdir(folder)
        file = os.open(shown, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for standard in (1, 2):
            os.dup2(file, standard)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        os.environ |= {"HOME": str(folder), "TMPDIR": str(folder), "COLUMNS": "120"}
        sys.argv = ["streamdp", *command.split()]
        if forced is not None:
            _force(f"{forced}/{command}")
        try:
            main()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()

    life = tracer.live(work, witness=witness)
    return life.status, shown.read_bytes(), life.stops


def _force(seed: str) -> None:
    """Make a run repeatable: chance from a seed, one moment, one process number, no progress.

    Identities of releases have a chance of their own, and so has each release: how often a draw
    asks for bits may depend on records, and is no trace. The private digest of a file is the same
    for all, and a file is its name: inodes and times of birth are those of the folder of this run.
    """
    draws, names = ReplayedEntropy(seed), ReplayedEntropy(f"{seed}/names")

    def bits(self: OperatingSystemEntropy, count: int) -> int:
        nonlocal draws
        if count == RELEASE_ID_BITS:
            draws = ReplayedEntropy(f"{seed}/{names.requests}")
            return names.bits(count)
        return draws.bits(count)

    OperatingSystemEntropy.bits = bits  # type: ignore[method-assign]
    SqliteStore.keyed_digest = lambda self, content: b"private"  # type: ignore[method-assign]
    files.identity_of = lambda path, facts: f"file:{Path(path).name}"
    SystemClock.now = lambda self: START + 30 * 86_400  # type: ignore[method-assign]
    vars(secrets).update(token_bytes=lambda size: b"k" * size, token_hex=lambda size: "5" * size)
    os.getpid = lambda: 4711
    vars(run).update(SAY_EVERY=math.inf)  # lines of progress come with the seconds that pass
