"""Twin runs: neighbouring batches, the same chance, and every trace they leave.

Where both release the same values, every file they leave must be equal byte for byte, and so must
what each command prints, its exit code, and its calls to the kernel that write. Where the values
differ, all that must be equal except them and what follows from them: learned states and hashes.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from streamdp.store.database import connect_to_read
from streamdp.store.release_rows import ROWS_OF_RELEASE
from tests.crash.home import CONFIG, Home, folder
from tests.crash.terminal import typed
from tests.web.addresses import answers
from tests.worlds import START

T = TypeVar("T")

COMMANDS = ("run --once", "status", "budget --ledger --json", "logs")

NEIGHBOURS: tuple[tuple[Sequence[str], str], ...] = (
    ((), "50"),
    (("50",), "50"),
    (("7",) * 20, "7"),
    (("7",) * 20, "8"),
    (("10", "90"), "1e300"),
    (("10", "90"), "-1e300"),
    (("10", "90"), "nan"),
    (("10", "90"), ""),
    (("10", "90"), "no number"),
    ((), "-0.0"),
)
"""Records of a batch, and the one that its neighbour has more."""

OF_EVERY_KIND: tuple[tuple[Sequence[str], str], ...] = (
    (("7,a",) * 5, "50,a text that no list has"),
    (("10,a", "90,b", "20,"), "1e300,"),
    ((), "50,a"),
    (("10,a", "90,b"), "nan,b"),
    (("1,a",) * 9 + ("2,b",) * 9, "no number,a"),
    (("3,",) * 20, "-1e300,longer than all others"),
)
"""Neighbours for all kinds: a number and a text each."""

LATER = START + 40 * 86_400
"""When the page is looked at."""

_PUBLIC = (
    "seq, at, purpose, scope, job, batch, reservation, epsilon_nano, rho_nano, release_id,"
    " lifetime_spent_nano"
)


def neighbours(count: int) -> Iterator[tuple[Sequence[str], str]]:
    """The named pairs, then random ones."""
    yield from NEIGHBOURS[:count]
    chance = random.Random(count)
    for _ in range(count - len(NEIGHBOURS)):
        records = [str(chance.randint(-20, 120)) for _ in range(chance.randint(0, 30))]
        yield records, str(chance.randint(-20, 120))


def of_every_kind(count: int) -> Iterator[tuple[Sequence[str], str]]:
    """The named pairs with a text each, then random ones."""
    yield from OF_EVERY_KIND[:count]
    chance = random.Random(count)
    words = ("", "a", "b", "not listed")
    for _ in range(count - len(OF_EVERY_KIND)):
        size = chance.randint(1, 31)
        records = [f"{chance.randint(-20, 120)},{chance.choice(words)}" for _ in range(size)]
        yield records[1:], records[0]


def as_csv(path: Path, records: Sequence[str]) -> None:
    """Write records, a number each and a text behind a comma if there is one, for both sources."""
    noted = [record if "," in record else f"{record}," for record in records]
    rows = [f"2023-11-15T12:00:00,{record}" for record in noted]
    others = ["2023-11-16T12:00:00,40,a", "2023-11-17T12:00:00,60,b"]
    (path / "stream.csv").write_text("\n".join(["at,x,note", *rows, *others, ""]))
    (path / "drops" / "a.csv").write_text("\n".join(["x,note", *noted, ""]))


def difference(
    records: Sequence[T],
    one_more: T,
    config: str = CONFIG,
    write: Callable[[Path, Sequence[T]], None] = as_csv,  # type: ignore[assignment]
) -> list[str]:
    """Names of what differs between the traces of a batch and its neighbour.

    Args:
        records: Of the batch.
        one_more: What the neighbour has more.
        config: What is released of them.
        write: Writes records into the folder of an installation, where the sources are.
    """
    traces = []
    with folder() as place:
        for more in ([one_more], []):
            home = Home.furnish(place / "twin", config)
            write(home.path, [*records, *more])
            traces.append(_traces(home))
            shutil.rmtree(place / "twin")
    same = traces[0]["released"] == traces[1]["released"]
    ended = traces[0]["exit code of run --once"]
    wrong = [f"{records!s:.99}: run --once ends with {ended}"] if ended else []
    return wrong + [
        f"{records!s:.99} and {one_more!r:.99}: {what}"
        for what in sorted(traces[0] | traces[1])
        if (same or not what.startswith(("file ", "calls", "released")))
        and traces[0].get(what) != traces[1].get(what)
    ]


def _traces(home: Home) -> dict[str, object]:
    """Everything that is left to see, by name; moments of the real clock are masked."""
    traces: dict[str, object] = {}
    for command in COMMANDS:
        code, shown, calls = typed(home.path, command, forced="twin")
        traces |= {f"exit code of {command}": code, f"what {command} prints": _masked(shown)}
        traces[f"calls of {command}"] = calls
    files = [file for file in sorted(home.path.rglob("*")) if _is_trace(home, file)]
    traces |= {f"file {file.name}": _masked(file.read_bytes()) for file in files}
    traces["names of files"] = [file.name for file in files]
    traces["log"] = _masked((home.path / "streamdp.log").read_bytes())
    with closing(connect_to_read(home.store)) as store:
        traces["ledger"] = store.execute(f"SELECT {_PUBLIC} FROM ledger").fetchall()
        released = store.execute(
            f"SELECT job, batch, {ROWS_OF_RELEASE} FROM release r ORDER BY 1, 2"
        ).fetchall()
        traces["shape of releases"] = [
            (job, batch, [sorted(row) for row in json.loads(rows)]) for job, batch, rows in released
        ]
        traces["outbox"] = store.execute("SELECT * FROM outbox ORDER BY 1, 2").fetchall()
    traces["released"] = released
    for address, (status, content) in answers(home.path / "config.yaml", LATER).items():
        traces |= {f"status of {address}": status, f"file {address}": _masked(content)}
    return traces


def _is_trace(home: Home, file: Path) -> bool:
    """Whether a file is none of the sources'."""
    place = file.relative_to(home.path).parts[0]
    return file.is_file() and place not in ("stream.csv", "drops", "data")


def _masked(content: bytes) -> bytes:
    """Without moments, hashes of ledger rows, which follow from released values, and free space.

    Whatever else writes to the volume changes that.
    """
    year = str(datetime.now(UTC).year).encode()
    moment = year + rb"-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?"
    content = re.sub(rb'"hash": ?"[0-9a-f]{64}"', b'"hash": "<hash>"', content)
    content = re.sub(rb"(streamdp_volume_free_bytes\{[^}]*\}) \S+", rb"\1 <free>", content)
    return re.sub(moment, b"<now>", content)
