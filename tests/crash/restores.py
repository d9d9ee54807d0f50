"""Copies of a store put back where newer kinds are released and configurations are edited.

The model is what may have been learned: before records are read, scope, batch and event of the draw
are written outside the installation, by a life that is kept and by one that is forgotten. What was
drawn must be charged, and be within the caps that there ever were, by an accountant of its own. A
store that is not the newest must be refused, and what an operator then says must lead on. No
release is told twice in different words, and no run of a gate goes on after its yes.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

from streamdp.database import Database
from streamdp.engine import attempts
from streamdp.engine.draw import Ready
from streamdp.engine.gate import Gatekeeper, GateRunner
from streamdp.engine.job import EngineContext, Job
from streamdp.engine.release import release_batch
from streamdp.errors import ConfigurationError, IntegrityError, InternalError, StreamdpError
from streamdp.sinks.columns import record
from streamdp.store import archive
from streamdp.store.database import connect_to_read
from streamdp.store.ledger.chain import Events
from streamdp.store.reconcile import reconcile
from streamdp.types import Backend, Batch, Json, Query, Release
from tests.crash.adopted import adopted
from tests.crash.edited import EDITS, WORLDS, World
from tests.crash.home import Home, folder
from tests.invariants import violations
from tests.privacy.accounting.accountant import ORDERS, divergence
from tests.worlds import START, HandClock

DAY, LIVES = 86_400, 3
ABOUT = {"operator": "restores", "reason": "test"}
SURE = 4096.0
"""An order at which the divergence of a pure loss is nearly all of it."""

LIFE = "all batches"
OVER = frozenset({"no batch is above its cap", "no scope is above its cap"})


@dataclass(frozen=True, slots=True)
class Witness:
    """A backend that has it written down that records are read.

    Args:
        backend: Reads them.
        tell: Writes it down.
    """

    backend: Backend
    tell: Callable[[], None]

    def check(self, query: Query, batch: Batch) -> None:
        """As the backend."""
        self.backend.check(query, batch)

    def answer(self, query: Query, batch: Batch) -> Any:
        """As the backend, told before."""
        self.tell()
        return self.backend.answer(query, batch)


@dataclass(frozen=True, slots=True)
class Saved:
    """An installation that was put aside, after so many lives."""

    place: Path
    lives: int

    @property
    def releases(self) -> set[str]:
        """Names of its releases."""
        return {str(row[0]) for row in Home(self.place / "home").facts()["release"]}


@dataclass
class Trial:
    """An installation, what was drawn in it, and copies of its store.

    Args:
        place: Folder of the installation and of what is written beside it.
        world: What is configured at first.
        chance: Of edits and copies.
        told: Every line that ever reached the sink, by release.
        name: Of this future.
        lives: How many there were.
        copies: Whether the store is copied now and then.
        assumed: Invariants that charges by assumption may break: a run is charged to all batches
            together, and again to each that had joined it.
        wrong: Violations.
    """

    place: Path
    world: World
    chance: random.Random
    told: dict[str, bytes]
    name: str = "past"
    lives: int = 0
    copies: bool = False
    assumed: frozenset[str] = frozenset()
    wrong: list[str] = field(default_factory=list)

    @property
    def home(self) -> Home:
        """The installation, on its last day."""
        clock = HandClock(START + (2 + self.lives) * DAY)
        return Home(self.place / "home", clock, engine=True)

    def live(self) -> StreamdpError | None:
        """One life of a daemon; what it was refused with, if it was."""
        self.lives += 1
        home = self.home
        drop = self.place.parent / "drops" / f"{self.lives}.csv"
        drop.parent.mkdir(exist_ok=True)
        if not drop.exists():
            drop.write_text("x,note\n50,a\n60,b\n")
        try:
            with self._witnessed():
                outcomes = home.live(f"{self.name}/{self.lives}")
        except StreamdpError as error:
            return error
        self.wrong += [str(each) for each in outcomes.errors if isinstance(each, InternalError)]
        for name, line in home.published().items():
            if self.told.setdefault(name, line) != line:
                self.wrong.append(f"release {name} was told twice in different words")
        return None

    def edited_life(self) -> StreamdpError | None:
        """A life under an edited configuration; an edit that is refused is undone."""
        file = self.place / "home" / "config.yaml"
        before = file.read_text()
        said = yaml.safe_load(before)
        with suppress(KeyError):  # another world has no such thing
            self.chance.choice(EDITS)(said, self.chance)
        file.write_text(yaml.safe_dump(said))
        error = self.live()
        if isinstance(error, ConfigurationError):
            file.write_text(before)
            return self.live()
        return error

    @contextmanager
    def _witnessed(self) -> Iterator[None]:
        """Have every reading of records written down, and copy the store before some."""
        read, answer = Gatekeeper._read, Gatekeeper._answer

        def released(job: Job, batch: Batch, ready: Ready, around: EngineContext) -> Release:
            assert ready.plan.unit_event is None
            told = partial(self._note, "draw", batch.key, "", ready.plan.event)
            seen = replace(job, backend=Witness(job.backend, told))
            return release_batch(seen, batch, ready, around)

        def reading(keeper: Gatekeeper, gate: GateRunner, batch: Batch, run: Any) -> Any:
            open_run = keeper.around.store.gates.open_run(gate.name)
            assert open_run is not None
            self._note("test", batch.key, str(open_run.hidden), gate.kind.terms())
            return read(keeper, gate, batch, run)

        def answering(keeper: Gatekeeper, gate: GateRunner, run: Any, *rest: Any) -> bool:
            accepted = answer(keeper, gate, run, *rest)
            self._note("yes" if accepted else "no", "", str(run.hidden), {})
            return accepted

        with (
            mock.patch.object(attempts, "release_batch", released),
            mock.patch.object(Gatekeeper, "_read", reading),
            mock.patch.object(Gatekeeper, "_answer", answering),
        ):
            yield

    def _note(self, *line: Any) -> None:
        with (self.place / "watched").open("a") as file:
            file.write(json.dumps(line) + "\n")
        if self.copies and self.chance.random() < 0.1:
            self.copy(f"{self.lives}-{self.chance.random()}")

    def copy(self, name: str) -> None:
        """Copy store and anchor as they are, in the midst of work or at rest."""
        target = self.place / "copies" / name
        target.mkdir(parents=True)
        for file in _files(self.place / "home"):
            shutil.copy(file, target)
        shutil.copy(self.place / "home" / "vault" / "anchor", target / "anchor")

    def save(self, name: str) -> Saved:
        """Put everything aside but the records, which stay where they are."""
        saved = self.place.with_name(name)
        shutil.copytree(self.place, saved)
        return Saved(saved, self.lives)

    def fork(self, saved: Saved, name: str) -> Trial:
        """Go back to what was saved: another future of the same past, in the same folder."""
        shutil.rmtree(self.place)
        shutil.copytree(saved.place, self.place)
        return replace(
            self, name=name, lives=saved.lives, copies=False, assumed=frozenset(), wrong=[]
        )

    def put_back(self, copied: Path | None) -> None:
        """Replace the store by a copy, or by nothing."""
        for file in _files(self.place / "home"):
            file.unlink()
        if copied is not None:
            for file in _files(copied):
                shutil.copy(file, self.place / "home")

    def go_on(self) -> bool:
        """Take the first command that leads on, the cheaper one first."""
        home = self.home
        configuration = home.configuration()
        paths = home.store, home.path / "vault" / "anchor"
        now, terms = home.clock.now(), configuration.terms()
        ways: tuple[Callable[[], object], ...] = (
            lambda: adopted(configuration, ABOUT, now),
            lambda: reconcile(*paths, terms, configuration.data(), ABOUT, now),
        )
        for way in ways:
            with suppress(StreamdpError):
                way()
                return True
        return False

    def check(self) -> None:
        """Look at what must hold of a store that works, whatever it and its copies did before."""
        self.wrong += set(violations(self.home.store)) - self.assumed
        with closing(connect_to_read(self.home.store)) as database:
            for (name,) in database.execute("SELECT id FROM release").fetchall():
                kept = json.dumps(record(archive.release_of(database, name)))
                if name in self.told and json.loads(self.told[name]) != json.loads(kept):
                    self.wrong.append(f"release {name} is kept otherwise than it was told")
            charged = _charged(database)
        for batch, events in self._drawn().items():
            cap = self.world.lifetime if batch == LIFE else self.world.batch
            for order in (*ORDERS, SURE):
                lost = sum(divergence(event, order, self.world.rows) for event in events)
                paid = sum(divergence(event, order) for event in charged.get(batch, ()))
                if lost > min(paid, divergence(cap, order)) * (1 + 1e-9):
                    self.wrong.append(f"{batch}: {lost} drawn, {paid} charged, at order {order}")
                    break

    def _drawn(self) -> dict[str, list[Json]]:
        """Events by batch, and all of them; a run of a gate once in each."""
        found: dict[str, list[Json]] = {}
        runs: set[tuple[str, str]] = set()
        ended: set[str] = set()
        for line in (self.place / "watched").read_text().splitlines():
            what, batch, run, event = json.loads(line)
            if what == "yes":
                ended.add(run)
            if what not in ("draw", "test"):
                continue
            if run in ended:
                self.wrong.append(f"{batch} is tested by a run that has accepted")
            for place in (batch, LIFE):
                if not run or (place, run) not in runs:
                    runs.add((place, run))
                    found.setdefault(place, []).append(event)
        return found


def _files(path: Path) -> list[Path]:
    """A store and its log."""
    return [each for each in path.glob("store.db*") if each.name in ("store.db", "store.db-wal")]


def _charged(database: Database) -> dict[str, list[Json]]:
    """Events of the ledger by batch, and all of them; a run of a gate once in each."""
    found: dict[str, list[Json]] = {}
    rows = database.execute(
        "SELECT l.purpose, l.batch, coalesce(r.event, l.event) FROM ledger l"
        " LEFT JOIN ledger r ON l.purpose = 'join' AND r.seq = l.reservation"
        " WHERE l.purpose IN ('reserve', 'open', 'join')"
    )
    events = Events(database)
    for purpose, batch, stored in rows.fetchall():
        event = events.whole(stored)
        places = ([] if purpose == "join" else [LIFE]) + ([batch] if batch else [])
        for place in places:
            found.setdefault(place, []).append(json.loads(event))
    return found


def past(place: Path, seed: int, world: World | None = None) -> Trial:
    """An installation after some days, edited meanwhile, and copies of its store."""
    chance = random.Random(seed)
    world = world or WORLDS[seed % len(WORLDS)]
    Home.furnish(place / "now" / "home", world.config)
    rows = [
        f"2023-11-{15 + day}T12:00:00,{value},{chance.choice('abc')},{number % 3}"
        for day in range(9)
        for number, value in enumerate(chance.sample(range(100), 6))
    ]
    (place / "stream.csv").write_text("\n".join(["at,x,note,who", *rows, ""]))
    trial = Trial(place / "now", world, chance, {}, copies=True)
    for _ in range(LIVES):
        error = trial.edited_life() if trial.lives else trial.live()
        if error is not None:
            trial.wrong.append(f"an undisturbed life was refused: {error}")
        trial.copy(f"rest-{trial.lives}")
    trial.check()
    return trial


def _led_on(trial: Trial, newest: Saved) -> None:
    """Start; where that is refused, do what an operator is told to, and start again, edited.

    Args:
        trial: What starts.
        newest: Where the newest store stood.
    """
    error = trial.live()
    if isinstance(error, IntegrityError):
        if not trial.go_on():
            trial.wrong.append(f"nothing leads on from {error}")
        trial.assumed = OVER
        error = trial.edited_life()
    elif error is None and not newest.releases <= _releases(trial):
        trial.wrong.append("a store that is not the newest was taken for it")
    if error is not None:
        trial.wrong.append(f"it does not go on: {error}")
    else:
        trial.check()


def _releases(trial: Trial) -> set[str]:
    return {str(row[0]) for row in trial.home.facts()["release"]}


def _forks(past: Trial, most: int) -> Iterator[Trial]:
    """Every way to put back what is not the newest."""
    newest = past.save("newest")
    copies = sorted((newest.place / "copies").iterdir())
    chosen = past.chance.sample(copies, min(most, len(copies)))
    for number, copied in enumerate([None, *chosen]):
        trial = past.fork(newest, f"restored {number}")
        trial.put_back(copied)
        _led_on(trial, newest)
        yield trial
        if number % 3 == 1:
            further = trial.save(f"further-{number}")
            back = trial.fork(further, f"returned {number}")
            back.put_back(newest.place / "home")
            _led_on(back, further)
            yield back
    for number, copied in enumerate([None, *chosen[:2]]):
        trial = past.fork(newest, f"anchor {number}")
        anchor = trial.place / "home" / "vault" / "anchor"
        anchor.unlink()
        if copied is not None:
            shutil.copy(copied / "anchor", anchor)
        _led_on(trial, newest)
        yield trial


def wrongs(seed: int, most: int = 6) -> Iterator[str]:
    """Violations of one past and of its futures, in which at most so many copies are put back."""
    with folder() as place:
        lived = past(place, seed)
        yield from (f"{seed}: {wrong}" for wrong in lived.wrong)
        for fork in _forks(lived, most):
            yield from (f"{seed} {fork.name}: {wrong}" for wrong in fork.wrong)


def trial(seed: int) -> list[str]:
    """All violations of one past and of its futures."""
    return list(wrongs(seed))
