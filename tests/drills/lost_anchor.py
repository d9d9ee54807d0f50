"""The machine is gone: a copy of the store and the configuration are left, and no anchor.

Random pasts of the restore sweep (`tests.crash.restores`): gates, prices in rho, units, files,
edits, copies in the midst of work. One copy is put back without an anchor, `anchor adopt` charges
what it computes or what was stated, and the daemon goes on. What was drawn since is known outside
of the installation.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

from streamdp.errors import IntegrityError, StreamdpError
from streamdp.store.database import connect_to_read
from streamdp.store.ledger.ledger import spent_by_scope
from tests.crash import restores
from tests.crash.adopted import adopted
from tests.crash.edited import WORLDS, World
from tests.crash.home import folder

Way = Literal["computed", "stated"]

FILES = World(
    """
store: {path: store.db, anchor: vault/anchor}
privacy: {unit: visit, neighbours: add-remove, caps: {batch: 0.5, lifetime: 9}}
sources:
  stream: {path: "../../drops/*.csv", types: {x: number}, batches: files, settle: 0s}
releases:
  by_note: {kind: statistics, source: stream, by: note, groups: [a, b], measures: {rows: count},
    epsilon: 0.2, sinks: [file]}
sinks:
  file: {kind: jsonl, path: out.jsonl}
log: {path: streamdp.log}
""",
    {"type": "pure", "epsilon": "0.5"},
    {"type": "pure", "epsilon": "9"},
)
"""A file a life."""


@dataclass(frozen=True, slots=True)
class Drill:
    """One loss and the way back; amounts in nano units of the measure of the caps.

    Args:
        past: Its number.
        way: Whether the bound was computed or stated.
        measure: Of the amounts.
        spent: What was spent since the copy.
        charged: What was charged for it.
        released: Batches that were released after the adoption, in the next life.
        wrong: What must not be.
    """

    past: int
    way: Way
    measure: str
    spent: int
    charged: int
    released: int
    wrong: tuple[str, ...]


def drill(seed: int, way: Way = "computed") -> Drill:
    """Lose a machine at some time, put a copy back, adopt, go on."""
    chance = random.Random(seed)
    with folder() as place:
        worlds = (*WORLDS, FILES)
        past = restores.past(place, seed, worlds[seed % len(worlds)])
        newest = past.save("newest")
        copied = chance.choice(sorted((newest.place / "copies").iterdir()))
        (scope,) = past.home.configuration().sources
        measure = past.home.configuration().caps_of(scope).measure
        before_loss = _spent(past, scope, measure)
        trial = past.fork(newest, f"drill {seed}")
        trial.put_back(copied)
        (trial.place / "home" / "vault" / "anchor").unlink()
        copy_knew = _spent(trial, scope, measure)
        spent, wrong = before_loss - copy_knew, list[str]()
        if not isinstance(trial.live(), IntegrityError):
            wrong.append("a store without its anchor was taken for the newest")
        said = {scope: spent} if way == "stated" else None
        adopted(trial.home.configuration(), restores.ABOUT, trial.home.clock.now(), said)
        charged = _spent(trial, scope, measure) - copy_knew
        if charged < spent:
            wrong.append(f"{charged} charged of {spent}")
        trial.assumed = restores.OVER
        released = 0
        for _ in range(2):
            before = _releases(trial)
            if (error := trial.live()) is not None:
                wrong.append(f"it does not go on: {error}")
            released += _releases(trial) - before
        trial.check()
        return Drill(seed, way, measure, spent, charged, released, (*wrong, *trial.wrong))


def drills(pasts: int) -> Iterator[Drill]:
    """Both ways back in so many pasts."""
    for seed in range(pasts):
        for way in ("computed", "stated"):
            try:
                yield drill(seed, way)
            except StreamdpError as error:
                yield Drill(seed, way, "", 0, 0, 0, (str(error),))


def _spent(trial: restores.Trial, scope: str, measure: str) -> int:
    with closing(connect_to_read(trial.home.store)) as database:
        return spent_by_scope(database)[scope, measure]


def _releases(trial: restores.Trial) -> int:
    return len(trial.home.facts()["release"])
