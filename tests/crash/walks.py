"""Random walks: a daemon, an operator and a disk that do what they should not.

The model is what may have been learned: a line is written outside the installation before any
record is read, whoever reads it, a daemon that is killed, a copy, a store put back from a backup.
Whatever happened, a store that is worked with has charged at least that, and it never is more than
the ledger was ever allowed.
"""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from streamdp.errors import IntegrityError, StreamdpError
from streamdp.privacy.filters import Caps
from streamdp.store.ledger import ledger
from streamdp.store.reconcile import reconcile
from streamdp.store.sqlite import SqliteStore
from tests.crash import tracer
from tests.crash.adopted import adopted
from tests.crash.home import CONFIG, Home, folder
from tests.crash.tracer import FOREIGN, Moment, Point
from tests.invariants import violations
from tests.worlds import START, HandClock

DAY, NANO = 86_400, 10**9
ABOUT = {"operator": "walk", "reason": "test"}
CLEAN, CONFIGURATION, INTEGRITY = 0, 2, IntegrityError.exit_code

Charges = Counter[tuple[str, str]]
"""Nano-epsilon by scope and batch."""


@dataclass
class Walk:
    """One installation, what is done to it, and what may have been learned."""

    place: Path
    chance: random.Random
    steps: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        clock = HandClock(START + 3 * DAY)
        text = CONFIG.replace(", end: 2023-11-18", "")
        self.home = Home.furnish(self.place / "home", text)
        self.home.clock, self.home.watched = clock, self.place / "watched"
        self.backup = self.place / "backup"
        self.restored = self.claimed = False
        self.caps = {"stream": [0.3, 20.0], "drops": [0.3, 20.0]}
        self.last_good = text
        self.files = 0

    def step(self) -> None:
        """Do one thing, and look."""
        name = self.chance.choices(list(STEPS), list(STEPS.values()))[0]
        self.steps.append(name)
        getattr(self, f"_{name}")()

    def _live(self, point: Point | None = None) -> None:
        seed = f"{len(self.steps)}"
        life = tracer.live(lambda: self.home.live(seed, rounds=2), point)
        if not life.killed:
            self._judge(life.status)

    def _crash(self) -> None:
        moment: Moment = self.chance.choice(("before", "half", "after"))
        self._live(Point(int(self.chance.paretovariate(0.4)) + 20, moment))

    def _full(self) -> None:
        moment: Moment = self.chance.choice(("full", "full once"))
        self._live(Point(int(self.chance.paretovariate(0.4)) + 20, moment))

    def _judge(self, status: int) -> None:
        """What an operator does about an exit code, and what must hold where there is none."""
        if status == CONFIGURATION:
            self._write(self.last_good)
        elif status == INTEGRITY:
            self._rescue()
        elif status == CLEAN:
            self.last_good, self.claimed = self._text(), True
            self._check()
        elif status == FOREIGN:
            self.wrong.append("a foreign exception")

    def _rescue(self) -> None:
        """Undo the last edit; reconcile or adopt, as a refusal says: one of them must do."""
        self._write(self.last_good)
        paths = self.home.store, self.home.path / "vault" / "anchor"
        now, said = self.home.clock.now(), []
        configuration = self.home.configuration()
        terms, data = configuration.terms(), configuration.data()
        self.restored = True
        for way in (
            lambda: reconcile(*paths, terms, data, ABOUT, now),
            lambda: adopted(configuration, ABOUT, now),
        ):
            try:
                way()
                return
            except StreamdpError as error:
                said.append(str(error))
        self.wrong.append(f"no way out: {said}")

    def _check(self) -> None:
        learned, charged = self._learned(), self._charged()
        self.wrong += violations(self.home.store)
        if learned - charged:
            self.wrong.append(f"learned and not charged: {learned - charged}")
        of_scope: Counter[str] = Counter()
        for (scope, batch), nano in learned.items():
            of_scope[scope] += nano
            if nano > self.caps[scope][0] * NANO:
                self.wrong.append(f"{scope} {batch} is above its cap")
        for scope, nano in of_scope.items():
            if nano > self.caps[scope][1] * NANO:
                self.wrong.append(f"{scope} is above its cap")
        if not self.restored and len(self._slots()) != len(self.home.published()):
            self.wrong.append("a batch was released twice")

    def _slots(self) -> set[tuple[object, object]]:
        found = re.findall(
            rb'"job": "([^"]*)", "batch": "([^"]*)"', b"".join(self.home.published().values())
        )
        return {(job, batch) for job, batch in found}

    def _learned(self) -> Charges:
        """Charges of batches that were read; a torn line was written before its batch was read."""
        found: Charges = Counter()
        watched = self.place / "watched"
        for line in watched.read_text().splitlines() if watched.exists() else ():
            match line.split():
                case scope, batch, nano:
                    found[_data(scope), batch] += int(nano)
        return found

    def _charged(self) -> Charges:
        found: Charges = Counter()
        for row in self.home.facts()["ledger"]:
            if row[2] == "reserve":
                found[_data(str(row[3])), str(row[5])] += int(str(row[7]))
        return found

    def _text(self) -> str:
        return (self.home.path / "config.yaml").read_text()

    def _write(self, text: str) -> None:
        (self.home.path / "config.yaml").write_text(text)

    def _edit(self, pattern: str, to: str) -> None:
        self._write(re.sub(pattern, to, self._text(), count=1))
        self._live()

    def _tick(self) -> None:
        self.home.clock.seconds += DAY * self.chance.randint(1, 4)

    def _clock_back(self) -> None:
        self.home.clock.seconds -= DAY * self.chance.randint(1, 9)

    def _clock_ahead(self) -> None:
        self.home.clock.seconds += 40 * DAY

    def _drop(self) -> None:
        self.files += 1
        (self.home.path / "drops" / f"n{self.files}.csv").write_text(f"x\n{self.files}\n")

    def _alter(self) -> None:
        file = self.chance.choice(sorted((self.home.path / "drops").iterdir()))
        file.write_text(file.read_text() + "70\n")

    def _epsilon(self) -> None:
        self._edit(r"epsilon: [\d.]+", f"epsilon: {self.chance.choice((0.05, 0.1, 0.2, 0.3))}")

    def _rename_job(self) -> None:
        self._edit(r"  (daily|again\d*):", f"  again{len(self.steps)}:")

    def _rename_source(self) -> None:
        """The same records under another name, and perhaps by a link.

        Not between a lost store and its next start: the anchor knows charges by the names of their
        sources, and not which records these are about.
        """
        if not self.claimed:
            return
        text, name = self._text(), f"stream{len(self.steps)}"
        text = re.sub(r"  stream\d*:", f"  {name}:", text)
        text = re.sub(r"source: stream\d*", f"source: {name}", text)
        if self.chance.random() < 0.5:
            (self.home.path / f"{name}.csv").symlink_to(self.home.path / "stream.csv")
            text = re.sub(r"path: stream\d*\.csv", f"path: {name}.csv", text)
        self._write(text)
        self._live()

    def _resolution(self) -> None:
        self._edit(r"resolution: \d", f"resolution: {self.chance.choice((1, 2, 5))}")

    def _relation(self) -> None:
        self._edit("neighbours: add-remove", "neighbours: substitute")

    def _caps_edited(self) -> None:
        """Once the ledger knows the caps: before that an edit is the first word, not a change."""
        if not self.claimed:
            return
        self._edit(r"batch: [\d.]+", f"batch: {self.chance.choice((0.2, 0.3, 0.4, 5))}")

    def _cap_command(self) -> None:
        """A person raises a cap, with name and reason."""
        scope = self.chance.choice(sorted(self.caps))
        batch, life = self.caps[scope][0] + 0.1, self.caps[scope][1] + 1
        paths = self.home.store, self.home.path / "vault" / "anchor"
        if not self.home.store.exists():
            return
        try:
            store = SqliteStore.open(paths[0], self.home.clock.now(), paths[1])
        except StreamdpError:
            return
        try:
            with store.transaction():
                ledger.caps_of(store.database, scope)
                caps = Caps(round(batch * NANO), round(life * NANO))
                ledger.set_caps(store.database, scope, caps, ABOUT, self.home.clock.now())
            self.caps[scope] = [batch, life]
        except StreamdpError:
            pass
        finally:
            store.close()

    def _save(self) -> None:
        """A backup of the store, at rest or as a crash left it."""
        shutil.rmtree(self.backup, ignore_errors=True)
        self.backup.mkdir()
        for file in self.home.path.glob("store.db*"):
            if not file.name.endswith("-shm"):
                shutil.copy(file, self.backup)

    def _put_back(self) -> None:
        if self.backup.exists() and any(self.backup.iterdir()):
            self._lose_store()
            for file in self.backup.iterdir():
                shutil.copy(file, self.home.path)
            self._live()

    def _clone(self) -> None:
        """A copy in another folder that shares the anchor works for once."""
        copy = self.home.copy(self.place / f"clone{len(self.steps)}")
        shutil.rmtree(copy.path / "vault")
        (copy.path / "vault").symlink_to(self.home.path / "vault")
        life = tracer.live(lambda: copy.live(f"clone{len(self.steps)}"))
        if life.status == FOREIGN:
            self.wrong.append("a foreign exception in a clone")
        shutil.rmtree(copy.path)

    def _lose_store(self) -> None:
        for file in self.home.path.glob("store.db*"):
            if not file.name.endswith(".lock"):
                file.unlink()

    def _gone(self) -> None:
        """The store is deleted, and the daemon started."""
        self._lose_store()
        self.claimed = False
        self._live()


def _data(scope: str) -> str:
    """Whose records a scope is about, whatever it was renamed to."""
    return scope.rstrip("0123456789")


STEPS = {
    "live": 6,
    "crash": 8,
    "full": 2,
    "tick": 5,
    "clock_back": 1,
    "clock_ahead": 0.3,
    "drop": 2,
    "alter": 1,
    "epsilon": 1,
    "rename_job": 0.5,
    "rename_source": 0.5,
    "resolution": 0.5,
    "relation": 0.3,
    "caps_edited": 0.7,
    "cap_command": 0.7,
    "save": 1.5,
    "put_back": 0.7,
    "clone": 0.7,
    "gone": 0.2,
}
"""What may happen, and how often."""


def walk(seed: int, length: int) -> list[str]:
    """Violations of one walk, with the steps that led there."""
    with folder() as place:
        walking = Walk(place, random.Random(seed))
        for _ in range(length):
            walking.step()
            if walking.wrong:
                break
        if not walking.wrong:
            walking._live()
            walking._live()
        return [f"walk {seed} {walking.steps}: {wrong}" for wrong in walking.wrong]
