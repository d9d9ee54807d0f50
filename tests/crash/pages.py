"""Damaged files: store, write-ahead log and anchor flipped in every page and cut every 512 bytes.

A damaged installation may be refused, in words of our own. Or it may start, if it says what it said
before, down to the last row: then the damage is in space that holds nothing. Anything else is
accepted silently, and a violation.

A log that is damaged at its end is a log whose end was never written, as far as SQLite can tell.
There a start may also take up at the transaction before, as after a crash, if no charge is
forgotten and no published release is lost.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from streamdp.errors import StreamdpError
from streamdp.store.sqlite import SqliteStore
from tests.crash import tracer
from tests.crash.home import Facts, Home, folder
from tests.crash.tracer import Point

PAGE, SECTOR = 4096, 512
HEADER = 24
"""Bytes at the front of each page that are flipped one by one."""

MASKS = (0x01, 0x02, 0x04, 0x10, 0x20, 0x80, 0xFF)
STORE, LOG, ANCHOR, SINK = "store.db", "store.db-wal", "vault/anchor", "medians"

_PULSE = ("epoch", "pid", "heartbeat_at", "stopped_at", "applied_at")
"""Signs of life, and when the schema was made: nothing follows from them."""


@dataclass(frozen=True, slots=True)
class Stand:
    """An installation at rest, or as a crash left it: its files, and what it says when started."""

    crashed: bool
    files: dict[str, bytes]
    truth: Facts
    published: frozenset[str]


@dataclass(frozen=True, slots=True)
class Damage:
    """What happens to one file: a byte of it flips, it is cut to a size, or it is gone.

    Args:
        file: Its name in the installation.
        place: Of the byte, or the size that is left; None if nothing is.
        mask: Bits that flip, or 0 for a cut.
    """

    file: str
    place: int | None
    mask: int = 0

    def of(self, whole: bytes) -> bytes | None:
        """What is left of a file."""
        if self.place is None or self.mask == 0:
            return None if self.place is None else whole[: self.place]
        flipped = bytes([whole[self.place] ^ self.mask])
        return whole[: self.place] + flipped + whole[self.place + 1 :]


def stands(template: Home) -> Iterator[Stand]:
    """One at rest after all its work, and one that died before its last delivery."""
    with folder() as place:
        rest, dead = template.copy(place / "rest"), template.copy(place / "dead")
        life = tracer.live(rest.live)
        last = max(stop for stop, kind in enumerate(life.stops) if kind == "fsync")
        # Before this process opens a store: what it caches shortens the lives of its children.
        tracer.live(dead.live, Point(last - 60, "before"))
        yield _stand(rest, crashed=False)
        yield _stand(dead, crashed=True)


def _stand(home: Home, *, crashed: bool) -> Stand:
    names = (STORE, LOG, ANCHOR) if crashed else (STORE, ANCHOR)
    files = {name: (home.path / name).read_bytes() for name in names}
    published = frozenset(home.published())
    _start(home)
    return Stand(crashed, files, say(home.store), published)


def damages(stand: Stand, stride: int) -> Iterator[Damage]:
    """Flips of every page's header and of one byte in `stride`; cuts; and each file gone.

    Args:
        stand: What is damaged; of a crashed one its log too.
        stride: Bytes between flips, shifted from page to page.
    """
    for file, whole in stand.files.items():
        for number, place in enumerate(_places(len(whole), stride)):
            yield Damage(file, place, MASKS[number % len(MASKS)])
        yield from (Damage(file, size) for size in range(0, len(whole), SECTOR))
        yield Damage(file, None)


def _places(size: int, stride: int) -> Iterator[int]:
    for page in range(0, size, PAGE):
        inner = range(HEADER + page // PAGE % stride, PAGE, stride)
        yield from (page + place for place in (*range(HEADER), *inner) if page + place < size)


def verdict(home: Home, stand: Stand, damage: Damage) -> str | None:
    """Start on damaged files: None if that is refused, or if nothing was lost.

    Args:
        home: Its files are overwritten.
        stand: What they were.
        damage: What one of them is now.
    """
    for path in home.path.glob("store.db*"):
        path.unlink()
    files: dict[str, bytes | None] = {**stand.files}
    files[damage.file] = damage.of(stand.files[damage.file])
    for name, content in files.items():
        (home.path / name).unlink(missing_ok=True)
        if content is not None:
            (home.path / name).write_bytes(content)
    try:
        _start(home)
    except StreamdpError:
        return None
    except Exception as error:  # noqa: BLE001
        return f"{damage}: a foreign {type(error).__name__}"
    try:
        wrong = _forgotten(home, stand) if stand.crashed else _changed(home, stand)
    except (sqlite3.Error, UnicodeDecodeError):
        wrong = ["it cannot be read"]
    return f"{damage}: accepted, and {', '.join(wrong)}" if wrong else None


def _start(home: Home) -> None:
    SqliteStore.open(home.store, home.clock.now(), home.path / ANCHOR).close()


def _changed(home: Home, stand: Stand) -> list[str]:
    """Tables that say something else."""
    said = say(home.store)
    return [f"another {name}" for name, rows in stand.truth.items() if said.get(name) != rows]


def _forgotten(home: Home, stand: Stand) -> list[str]:
    """Whether a charge or a published release is not there any more, or not the same."""
    facts, said = home.facts(), say(home.store)
    same = all(set(said[name]) <= set(stand.truth[name]) for name in ("release", "release_form"))
    wrong = [] if same else ["a release is another"]
    if not stand.published <= {str(row[0]) for row in facts["release"]}:
        wrong.append("a published release is lost")
    if _charges(stand.truth) - _charges(facts):
        wrong.append("a charge is forgotten")
    return wrong


def _charges(facts: Facts) -> Counter[tuple[object, ...]]:
    """Scope, batch and amount of every charge."""
    found: Counter[tuple[object, ...]] = Counter()
    for row in facts["ledger"]:
        if row[2] == "reserve":
            found[row[3], row[5], row[7]] += 1
    return found


def say(store: Path) -> Facts:
    """All that a store says: its schema and rows, less signs of life and the sink's table.

    What a sink was given is a copy for its readers; the archive is what is vouched for.
    """
    with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as database:
        made = "SELECT name, sql FROM sqlite_master WHERE tbl_name != ? AND sql NOT NULL"
        found: Facts = {"schema": [tuple(row) for row in database.execute(made, [SINK])]}
        for name, sql in found["schema"]:
            if str(sql).lstrip().upper().startswith("CREATE TABLE"):
                columns = database.execute("SELECT name FROM pragma_table_info(?)", [name])
                kept = ", ".join(f'"{column}"' for (column,) in columns if column not in _PULSE)
                rows = database.execute(f'SELECT {kept} FROM "{name}"')
                found[str(name)] = sorted(rows.fetchall(), key=repr)
    return found
