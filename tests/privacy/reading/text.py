"""CSV and JSON lines, written as text."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from streamdp.backends.duckdb.lines import BLOCK, BYTE_ORDER_MARK
from tests.privacy.reading.pairs import Pair

HOSTILE: dict[str, bytes] = {
    "long": b"x" * 100_000,
    "longer than a line may be": b"x" * (2**20 + 1),
    "empty": b"",
    "quote": b'"',
    "quotes": b'"a""b"""',
    "opening quote": b'"never ends',
    "line end": b'"a\nb"',
    "carriage return": b"a\rb",
    "NUL": b"a\0b",
    "bidi": "\u202ea\u2066b".encode(),
    "no UTF-8": b"a\xff\xfe\x80",
    "surrogate": b"\xed\xa0\x80",
    "delimiters": b",,,,,,,",
    "backslash": b"a\\",
    "not a number": b"nan",
    "infinite": b"-inf",
    "extreme": b"1e400",
    "nested": b"{[{[",
    "byte order mark": b"\xef\xbb\xbf1",
}

QUICK = ("line end", "carriage return", "no UTF-8", "opening quote")

ROLES: dict[str, tuple[str, str]] = {
    "value": ("measures: {h: {histogram: value, cuts: [0, 50], nulls: cell}}", "record"),
    "unit": ("measures: {records: count}", "{name: person, column: unit}"),
    "group": ("measures: {records: count}, by: [group], groups: [a, b]", "record"),
    "time": ("measures: {records: count}", "record"),
    "condition": ("measures: {records: count}, where: condition", "record"),
}
"""Release and unit in which a column of this name plays its part."""

COLUMNS = ("time", "value", "unit", "group", "condition")

ROWS = 300


@dataclass(frozen=True)
class Csv:
    """A CSV file whose record has one hostile field."""

    role: str
    text: bytes
    end: bytes = b"\n"

    name = "CSV"
    ending = "csv"

    def lines(self, extra: bool) -> Iterator[bytes]:
        """The header and the records; the hostile one stands among the others."""
        yield ",".join(COLUMNS).encode() + self.end
        for row in range(ROWS):
            if extra and row == ROWS // 2:
                yield b",".join(self.fields()) + self.end
            plain = f"2026-01-{1 + row % 2:02},{row},u{row},{'ab'[row % 2]},true"
            yield plain.encode() + self.end

    def fields(self) -> list[bytes]:
        plain = dict(zip(COLUMNS, (b"2026-01-01", b"7", b"new", b"a", b"true"), strict=True))
        return list((plain | {self.role: self.text}).values())


@dataclass(frozen=True)
class JsonLines(Csv):
    """JSON lines whose record has one hostile field, its bytes within the quotes of a text."""

    name = "JSON lines"
    ending = "jsonl"

    def lines(self, extra: bool) -> Iterator[bytes]:
        for row in range(ROWS):
            if extra and row == ROWS // 2:
                named = zip(COLUMNS, self.fields(), strict=True)
                inside = b",".join(b'"%s":"%s"' % (name.encode(), text) for name, text in named)
                yield b"{%s}%s" % (inside, self.end)
            found = (f"2026-01-{1 + row % 2:02}", row, f"u{row}", "ab"[row % 2], True)
            yield json.dumps(dict(zip(COLUMNS, found, strict=True))).encode() + self.end


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": lambda data: gzip.compress(data, 1),
    ".zst": lambda data: bytes(pa.compress(data, "zstd", asbytes=True)),
}


def hostile(kind: type[Csv], role: str, record: str, end: bytes, packed: str) -> Pair:
    """The pair of one hostile field."""
    table = kind(role, HOSTILE[record], end)

    def write(folder: Path, extra: bool) -> None:
        data = b"".join(table.lines(extra))
        (folder / f"data.{kind.ending}{packed}").write_bytes(PACKED[packed](data))

    release, unit = ROLES[role]
    cut = "{column: time, every: 1d, start: 2026-01-01, end: 2026-01-03}"
    types = "{time: date, value: number, unit: text, group: text, condition: boolean}"
    ends = "CRLF" if end == b"\r\n" else "LF"
    return Pair(
        format=kind.name,
        writer=f"plain text{packed}, {ends}",
        role=role,
        record=record,
        write=write,
        source=f"path: 'data.{kind.ending}{packed}', types: {types}, batches: {cut}",
        release=release,
        unit=unit,
        base=(kind, role, end, packed),
        most=HOSTILE[record].count(b"\n") + 1,
    )


WITH_RETURN: dict[str, bytes] = {
    "carriage returns between values": b'{"value":\r7,\r"comment": "a"}',
    "carriage returns in a text": b'{"value": 7, "comment": "a\rb\r"}',
    "carriage return at the end": b'{"value": 7}\r\r',
}
"""Objects of JSON on one line, for readers that end a line at a line feed alone."""


def with_return(record: str, end: bytes, packed: str) -> Pair:
    """JSON lines whose batches are files: a part of a record is counted whatever it holds."""

    def write(folder: Path, extra: bool) -> None:
        row = b'{"value": 1, "comment": "a"}' + end
        data = row * ROWS + (WITH_RETURN[record] + end if extra else b"") + row * ROWS
        (folder / f"data.jsonl{packed}").write_bytes(PACKED[packed](data))

    ends = "CRLF" if end == b"\r\n" else "LF"
    return Pair(
        format="JSON lines",
        writer=f"plain text{packed}, {ends}",
        role="value",
        record=record,
        write=write,
        source=f"path: 'data.jsonl{packed}', types: {{value: number}}, settle: 0s, batches: files",
        release="measures: {h: {histogram: value, cuts: [0, 6, 50], nulls: cell}}",
        base=("return", end, packed),
        together=True,
    )


MEBIBYTE = 2**20

CUTS = {"512 KiB": BLOCK + len(BYTE_ORDER_MARK), "64 MiB": 64 * MEBIBYTE}
"""Where the reader's first block ends, and where DuckDB's own reader begins to read anew."""

LETTER = b'"Dear team,\nthanks, bye\n"'
"""A field that a quoting writer makes of a text with line ends."""

AT_CUT: dict[str, bytes] = {
    "quoted line ends": b'7,"999,""q""\n999,""q"""',
    "a letter": b"7," + LETTER,
    "plain": b"5,hello",
    "long": b"7," + b"x" * 10**6,
    "opening quote": b'7,"never ends',
}

AMONG = {"words": b"", "letters": (b"1," + LETTER + b"\n") * 500}
"""Records on both sides; a reader that has to guess whether it is within quotes errs by letters."""

HISTOGRAM = (
    "measures: {h: {histogram: value, cuts: [0, 6, 50, 900], nulls: cell}},"
    " where: value IS NULL OR comment IS NULL OR comment <> 'nobody'"
)
"""Both columns are named: a reader that does not look at a field does not fail at it either."""


def at_cut(
    cut: str,
    offset: int,
    record: str,
    end: bytes,
    packed: str,
    *,
    threads: int,
    ahead: int = 0,
    among: str = "words",
    pushes: bool = False,
    quoted: bool = False,
) -> Pair:
    """A record that begins some bytes from a cut, or from a place so many bytes ahead of it.

    The first record pads the file, so that the others lie where they do. Read line by line, a
    record of several lines is as many; with `quoted_newlines` it is one. A record that pushes
    stands at the top, and a letter of somebody else lies there instead.
    """
    place = CUTS[cut] + offset - ahead
    row, near, more = b"1,words of a comment" + end, AMONG[among], AT_CUT[record] + end

    def write(folder: Path, extra: bool) -> None:
        header = b"value,comment" + end
        pad = place - len(header) - len(end) - 2 - len(near) - (len(more) if pushes else 0)
        rows, pad = divmod(pad, len(row))
        start = b"1," + b"p" * pad + end + row * rows + near
        behind = near + row * (ahead // len(row) + 200_000 if cut == "64 MiB" else 2000)
        kept = more if extra else b""
        if pushes:
            data = header + kept + start + b"3," + LETTER + end + behind
        else:
            data = header + start + kept + behind
        (folder / f"data.csv{packed}").write_bytes(PACKED[packed](data))

    ends = "CRLF" if end == b"\r\n" else "LF"
    keys = ", quoted_newlines: true" if quoted else ""
    many = "1 thread" if threads == 1 else f"{threads} threads"
    return Pair(
        format="CSV",
        writer=f"plain text{packed}, {ends}, {many}{keys}",
        role="value",
        record=f"{record}, pushes a letter" if pushes else record,
        write=write,
        source=f"path: 'data.csv{packed}', types: {{value: number}}, settle: 0s, batches: files,"
        f" engine: {{kind: duckdb, threads: {threads}}}{keys}",
        release=HISTOGRAM,
        place=f"{offset - ahead:+} bytes from {cut}, among {among}",
        base=(cut, offset, ahead, end, packed, among, quoted, record if pushes else ""),
        most=1 if quoted else AT_CUT[record].count(b"\n") + 1,
        together=cut == "512 KiB",
    )


def at_cuts(quick: bool) -> Iterator[Pair]:
    """Each byte around the first cut of a block; around DuckDB's, each byte of a plain file."""
    if quick:
        yield from _quick_at_cuts()
        return
    for end in (b"\n", b"\r\n"):
        for packed in PACKED:
            for quoted in (False, True):
                for offset in range(-64, 65):
                    yield from _around("512 KiB", offset, end, packed, threads=2, quoted=quoted)
        for offset in range(-64, 65):
            yield from _around("64 MiB", offset, end, "", threads=2)
        for packed in PACKED:
            for threads in (1, 2, 8):
                yield from _around("64 MiB", -6, end, packed, threads=threads)
        yield from _around("64 MiB", -6, end, "", threads=2, quoted=True)
        yield at_cut(
            "64 MiB", 0, "opening quote", end, "", threads=2, ahead=30 * MEBIBYTE, among="words"
        )


def _around(
    cut: str, offset: int, end: bytes, packed: str, *, threads: int, quoted: bool = False
) -> Iterator[Pair]:
    """Each record at one place; a letter without line ends in quotes would not be well formed."""
    for record in AT_CUT:
        if not (quoted and record == "opening quote"):
            for among in AMONG:
                yield at_cut(
                    cut,
                    offset,
                    record,
                    end,
                    packed,
                    threads=threads,
                    among=among,
                    quoted=quoted,
                )
    yield at_cut(cut, offset, "plain", end, packed, threads=threads, pushes=True, quoted=quoted)


def _quick_at_cuts() -> Iterator[Pair]:
    """One place for each."""
    for end in (b"\n", b"\r\n"):
        for record in ("quoted line ends", "a letter", "long", "opening quote"):
            yield at_cut("512 KiB", -6, record, end, "", threads=2)
            if record != "opening quote":
                yield at_cut("512 KiB", -6, record, end, "", threads=2, quoted=True)
    yield at_cut("64 MiB", -6, "a letter", b"\r\n", "", threads=2)
    yield at_cut("64 MiB", -6, "plain", b"\r\n", "", threads=2, pushes=True)
    yield at_cut("64 MiB", -6, "long", b"\n", "", threads=2, among="letters")
    yield at_cut("64 MiB", 0, "opening quote", b"\n", "", threads=2, ahead=30 * MEBIBYTE)


def pairs(quick: bool) -> Iterator[Pair]:
    """Each hostile field in each role, then each record at each cut."""
    yield from at_cuts(quick)
    packings = [(b"\n", "")] if quick else [(e, p) for e in (b"\n", b"\r\n") for p in PACKED]
    for kind in (Csv, JsonLines):
        for role in ROLES:
            for record in QUICK if quick else HOSTILE:
                for end, packed in packings:
                    yield hostile(kind, role, record, end, packed)
    for record in WITH_RETURN:
        for end, packed in packings:
            yield with_return(record, end, packed)
