"""Marked values in every type of cell, and a search for them in every byte that is written.

What is searched: every `write` of every command, to files that stay and files that do not, to the
terminal and to pipes; what every address of the page answers and a notebook shows; and at last the
content of every file that was left, of PDFs their text and all that is packed in them. What is
searched for: each mark as text in several encodings, as a number as engines store it, and digests
of marks and files.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import duckdb
from pypdf import PdfReader
from pypdf.generic import StreamObject

from tests.crash import every_kind
from tests.crash.home import folder
from tests.crash.terminal import COMMANDS, typed
from tests.web.addresses import answers

NUMBERS = ("61803398874989.25", "52.31415926535893", "-27182818284590.5", "88.57721566490153")
"""In and out of the bounds; what is released are multiples of 1 between 0 and 100."""

WORDS = ("ZQCANARYTEXT", "ZQPASSENGER", "ZQBROKENROW", "ZQCORRUPTED", "ZQJSONWORD", "ZQBLOBCELL")
WHOLE = 6180339887498948

CASTS = """
  casts:
    {source: stream, epsilon: 0.1, sinks: [file], kind: selection, score: {errors: x > 5},
     among: {conditions: {whole: CAST(note AS integer) > 1, day: CAST(note AS date) IS NULL}}}
"""
"""An engine that fails to cast quotes the text."""

CONFIG = (
    """
store: {path: store.db, anchor: vault/anchor}
privacy:
  {unit: person, neighbours: add-remove,
   caps: {batch: 2, lifetime: 20, delta: {lifetime: 1e-3}}}
sources:
  stream:
    path: secret/stream.csv
    types: {at: timestamp, x: number}
    batches: {column: at, every: 1d, start: 2023-11-15, end: 2023-11-17}
  cells: {path: "secret/cells/*.parquet", batches: files, settle: 0s}
  lines: {path: "secret/lines/*.jsonl", types: {x: number}, batches: files, settle: 0s}
  words: {path: "secret/words/*.parquet", batches: files, settle: 0s}
releases:
"""
    + "".join(
        f"  {source}_x:\n"
        f"    {{kind: quantiles, source: {source}, column: x, quantiles: [0.5], resolution: 1,"
        " bounds: [0, 100], epsilon: 0.1, sinks: [table, file, out]}\n"
        for source in ("stream", "cells", "lines", "words")
    )
    + """
sinks:
  table: {kind: table, table: medians}
  file: {kind: jsonl, path: out.jsonl}
  out: {kind: stdout}
log: {path: streamdp.log, level: debug}
"""
)
"""A release of each source."""

FINDING_NOTHING = {
    name: asked.replace("delta: 1e-4", "delta: 1e-15")
    for name, asked in every_kind.RELEASES.items()
}
"""A key of eleven records may be published with a chance of 1 in 500 at a delta of 1e-4."""

OF_EVERY_KIND = (
    CONFIG.replace(
        "\nsinks:\n",
        every_kind.releases("stream", "file, out", FINDING_NOTHING)
        + CASTS
        + "sinks:\n"
        + every_kind.TABLES,
    )
    + every_kind.REPORTS
)


def furnish(path: Path, config: str = CONFIG) -> None:
    """A folder whose sources are full of marks."""
    secret = path / "secret"
    for name in ("cells", "lines", "words"):
        (secret / name).mkdir(parents=True)
    (path / "vault").mkdir()
    (path / "config.yaml").write_text(config)
    cells = [*NUMBERS, WORDS[0], "", "NaN", "inf", "-1e308", f'"{WORDS[1]}"']
    rows = [f"2023-11-{day}T12:00:00,{cell},{WORDS[1]}" for day in (15, 16) for cell in cells]
    broken = f'2023-11-15T13:00:00,"{WORDS[2]},1'
    (secret / "stream.csv").write_text("\n".join(["at,x,note", *rows, broken]))
    one = ", ".join(f"({number}, {WHOLE}, '{WORDS[1]}', '{WORDS[5]}'::BLOB)" for number in NUMBERS)
    with duckdb.connect() as engine:
        engine.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {one}) v(x, whole, note, raw)")
        engine.execute(f"COPY t TO '{secret}/cells/a.parquet'")
        engine.execute(f"COPY (SELECT '{WORDS[0]}' AS x) TO '{secret}/words/a.parquet'")
    good = (secret / "cells" / "a.parquet").read_bytes()
    footer = int.from_bytes(good[-8:-4], "little") + 8
    rotten = (WORDS[3].encode() * len(good))[: len(good) - footer - 4]
    (secret / "cells" / "b.parquet").write_bytes(good[:4] + rotten + good[-footer:])
    (secret / "cells" / "c.parquet").write_bytes(good[:60] + WORDS[3].encode() * 9 + good[-60:])
    lines = [f'{{"x": {NUMBERS[1]}}}', f'{{"x": "{WORDS[4]}"}}', f'{{"x": [{WHOLE}]}}', "{broken"]
    (secret / "lines" / "a.jsonl").write_text("\n".join(lines))


def written(path: Path) -> bytes:
    """All that commands write, all that the page answers, and all that is left in files."""
    seen: list[bytes] = []
    for command in COMMANDS:
        _, shown, _ = typed(path, command, witness=seen.append)
        seen.append(shown)
    seen += [content for _, content in answers(path / "config.yaml", int(time.time())).values()]
    left = (file for file in path.rglob("*") if file.is_file() and "secret" not in file.parts)
    return b"\n".join([*seen, *chain.from_iterable(_content(file) for file in left)])


def _content(file: Path) -> Iterator[bytes]:
    """What is in a file, and what is packed in a PDF."""
    yield file.read_bytes()
    if file.suffix == ".pdf":
        pdf = PdfReader(file)
        yield from (page.extract_text().encode() for page in pdf.pages)
        for number in range(1, int(str(pdf.trailer["/Size"]))):
            packed = pdf.get_object(number)
            if isinstance(packed, StreamObject):
                yield packed.get_data()


def leaks(content: bytes, path: Path) -> Iterator[str]:
    """Marks that are found in what was written, and how they are written there."""
    lower = content.lower()
    for mark in (*NUMBERS, *WORDS, str(WHOLE)):
        for name, form in chain(_as_text(mark), _as_number(mark), _digests(mark.encode())):
            if form in content or form.lower() in lower:
                yield f"{mark} as {name}"
    for file in (path / "secret").rglob("*.*"):
        for name, form in _digests(file.read_bytes()):
            if form in content:
                yield f"{name} of {file.name}"


def _as_text(mark: str) -> Iterator[tuple[str, bytes]]:
    plain = mark.encode()
    yield "text", plain
    yield "UTF-16", mark.encode("utf-16-le")
    yield "hexadecimal", plain.hex().encode()
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + plain)
        yield f"base64 shifted by {shift}", whole[4 if shift else 0 : -4]


def _as_number(mark: str) -> Iterator[tuple[str, bytes]]:
    if mark[-1].isdigit():
        value = float(mark)
        yield "digits", mark.replace(".", "").strip("-")[:12].encode()
        yield "repr", repr(value).encode()
        yield "little-endian double", struct.pack("<d", value)
        yield "big-endian double", struct.pack(">d", value)
        if abs(value) > 2**40:
            yield "little-endian integer", struct.pack("<q", int(value))[:7]
            yield "big-endian integer", struct.pack(">q", int(value))[1:]


def _digests(content: bytes) -> Iterator[tuple[str, bytes]]:
    for name in ("sha256", "sha1", "md5"):
        found = hashlib.new(name, content, usedforsecurity=False)
        yield name, found.digest()
        yield f"{name} in hexadecimal", found.hexdigest().encode()


def scan(config: str = CONFIG) -> tuple[int, list[str]]:
    """Bytes that were searched, and what was found."""
    with folder() as place:
        home = place / "home"
        home.mkdir()
        furnish(home, config)
        content = written(home)
        return len(content), list(leaks(content, home))
