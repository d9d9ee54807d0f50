"""Power cuts: after each wait for the disk, the world is what was waited for and nothing more.

A process that is killed leaves what it wrote in the system's cache; a machine that loses its power
does not. The shadow of a life is kept beside it: a file is in it as it was when the last wait for
it returned. At each such moment the power is cut: the shadow takes the place of the installation,
and a restart must find every release that anybody could have seen, and pay for nothing twice.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash import tracer
from tests.crash.home import Home, folder
from tests.crash.kills import aftermath


@dataclass
class Shadow:
    """What is surely on the disk.

    Args:
        home: Whose.
        path: Where it is kept, with a copy of each of its states.
    """

    home: Home
    path: Path
    seen: list[frozenset[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        shutil.copytree(self.home.path, self.path / "now")

    def keep(self, file: Path) -> None:
        """A wait for a file, or for the names in a folder, has returned; then the power is cut."""
        if file.is_relative_to(self.home.path):
            kept = self.path / "now" / file.relative_to(self.home.path)
            if file.is_file():
                shutil.copy(file, kept)
            for gone in {each.name for each in kept.glob("*")} - {e.name for e in file.glob("*")}:
                (kept / gone).unlink()
            shutil.copytree(self.path / "now", self.path / str(len(self.seen)))
            self.seen.append(frozenset(self.home.published()))


@contextmanager
def life(template: Home) -> Iterator[Shadow]:
    """A life that ends well, and its shadow."""
    with folder() as place:
        home = template.copy(place / "home")
        shadow = Shadow(home, place / "shadow")
        assert tracer.live(home.live, durable=shadow.keep).status == 0, "the life ends well"
        yield shadow


def violations(shadow: Shadow, number: int) -> Iterator[str]:
    """What is wrong after the power was cut at one moment."""
    home = shadow.home
    shutil.rmtree(home.path)
    shutil.copytree(shadow.path / str(number), home.path)
    found = _violations(home, home.path.parent, shadow.seen[number])
    yield from (f"cut {number}: {wrong}" for wrong in found)


def _violations(home: Home, place: Path, seen: frozenset[str]) -> Iterator[str]:
    shutil.rmtree(place / "left", ignore_errors=True)
    facts = home.copy(place / "known").facts()
    shutil.rmtree(place / "known")
    known = (*facts.get("release", ()), *facts.get("notice", ()))
    if not seen <= {str(row[0]) for row in known}:
        yield "a release or a notice that somebody may have seen is gone"
    yield from aftermath(home, place)
