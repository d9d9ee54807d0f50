"""Lines of CSV and JSON lines files, and the fields of each line, so that a record is a line.

A file is split at line feeds, one block after the other, and one carriage return before a line feed
is cut off. What a line becomes follows from its own bytes: an empty one, one of more than LONGEST
bytes and one that is no UTF-8 are no record, and no quote reaches beyond its line. Where blocks end
changes nothing. So is it for `.gz` and `.zst`, which are unpacked on the way, all members of them.

A field that begins with a quote ends at the next quote that is not doubled; delimiters in it are
text, two quotes are one, and what stands behind it up to the delimiter is added to it. Quotes in
other fields are text, a quote without its end reaches to the end of the line, fields beyond the
header's are left out, and a missing or empty field is null.

Where line ends in quotes are text (`quoted_newlines`) a record ends at a line feed behind an even
number of quotes, and `require_well_formed` is asked before anything is read.

Lines are found by numpy and handed over as Arrow's string views, which share the bytes of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from streamdp.errors import SourceError
from streamdp.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST = 2**20
"""Bytes of the longest record, without its line end."""

BLOCK = 2**19
"""Bytes of a file that are looked at together."""

QUOTE, LINE_FEED, CARRIAGE_RETURN = b'"\n\r'
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_PAD = bytes(16)
"""Behind the bytes of a block, so that twelve can be looked at from each of them."""

_INLINE = 12
"""Bytes of a text that a string view holds itself."""

_MASKS = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF], dtype=np.uint32)

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


@contextmanager
def unpacked(file: str) -> Iterator[BinaryIO]:
    """Open a file for reading what it holds: `.gz` and `.zst` are unpacked, all members of them."""
    import pyarrow as pa

    packed = {"gz": "gzip", "zst": "zstd"}.get(file.rpartition(".")[2])
    with open(file, "rb") as opened:
        if packed is None:
            yield opened
        else:
            with pa.CompressedInputStream(opened, packed) as stream:
                yield cast("BinaryIO", stream)


@dataclass(frozen=True, slots=True)
class Block:
    """Some records of a file.

    Args:
        data: The bytes they lie in.
        starts: Where each begins.
        ends: Where each ends, behind its last byte, without the line end.
    """

    data: bytes
    starts: IntArray
    ends: IntArray

    def flat(self) -> Bytes:
        """The bytes as numbers."""
        return np.frombuffer(self.data, np.uint8)

    def only(self, kept: Mask) -> Block:
        """Some of the records."""
        return self if kept.all() else Block(self.data, self.starts[kept], self.ends[kept])


def blocks(file: str, *, header: bool, quoted_newlines: bool = False) -> Iterator[Block]:
    """Split a file into its records.

    Args:
        file: Its path.
        header: Whether the first line is none.
        quoted_newlines: Whether a line end behind an odd number of quotes is text.

    Privacy: which bytes are a record follows from those between two line ends; with
    `quoted_newlines` from all before them, in a file that is well formed.
    """
    rest, inside, skipping, first = b"", 0, False, True
    for read in chain(_read(file), (b"\n",)):  # the last line may have no end
        data = b"".join((rest, read, _PAD))
        flat = np.frombuffer(data, np.uint8, len(data) - len(_PAD))
        ends = np.flatnonzero(flat == LINE_FEED)
        if quoted_newlines:
            quotes = np.flatnonzero(flat == QUOTE)
            ends = ends[(inside + np.searchsorted(quotes, ends)) % 2 == 0]
            inside = (inside + len(quotes)) % 2
        if len(ends):
            rest = data[int(ends[-1]) + 1 : len(flat)]
            starts = np.concatenate(([0], ends[:-1] + 1))
            ends = ends - ((ends > starts) & (flat[ends - 1] == CARRIAGE_RETURN))
            kept = (ends > starts) & (ends - starts <= LONGEST)
            kept[0] &= not (skipping or (first and header))
            first = skipping = False
            yield _decodable(Block(data, starts, ends).only(kept))
        else:
            rest = data[: len(flat)]
        skipping = skipping or len(rest) > LONGEST + 1  # one for a carriage return
        if skipping:
            rest = b""
        else:
            inside = 0  # the rest begins a record, and will be looked at again


def require_whole(file: str) -> None:
    """Require that a compressed file can be unpacked to its end: it would fail after the charge.

    Privacy: this is a fact about the archive. One that its writer finished is whole, whatever
    records it holds.

    Raises:
        SourceError: It is cut off or damaged.
    """
    import pyarrow as pa

    if not file.endswith((".gz", ".zst")):
        return
    try:
        for _ in _read(file):
            pass
    except (OSError, pa.ArrowException):
        raise SourceError(
            "a compressed file cannot be unpacked to its end",
            where=file,
            hint="is it whole, and compressed as its ending says? write it anew",
        ) from None


def require_well_formed(file: str, delimiter: str) -> None:
    """Require that quotes stand around whole fields or are doubled in them, and all of them end.

    Privacy: this tells of records, so `quoted_newlines` assumes that whoever writes the file quotes
    every field that holds a quote, a delimiter or a line end.

    Raises:
        SourceError: One does not.
    """
    before, inside = b"\n", 0
    for read in chain(_read(file), (b"\n\n",)):
        data = before + read
        flat = np.frombuffer(data, np.uint8)
        quotes = np.flatnonzero(flat[1:-2] == QUOTE) + 1
        opens = (inside + np.arange(len(quotes))) % 2 == 0
        inside = (inside + len(quotes)) % 2
        if not _stand_well(flat, quotes, opens, ord(delimiter)).all():
            inside = 1
            break
        before = data[-3:]
    if inside:
        raise SourceError(
            "a quote in this file does not stand at the border of a field, or does not end",
            where=file,
            hint="with quoted_newlines a field with a quote, a delimiter or a line end is quoted,"
            " and quotes in it are doubled; without it a record is a line",
        )


def fields(block: Block, delimiter: str, places: Sequence[int]) -> list[pa.Array]:
    """Cut the fields at some places, counted from 0, out of each record of a block."""
    flat, starts, ends = block.flat(), block.starts, block.ends
    cuts = np.flatnonzero(flat == ord(delimiter))
    quotes = np.flatnonzero(flat == QUOTE)
    odd: IntArray = np.zeros(0, np.int64)
    if len(quotes):
        cuts, odd = _outside_quotes(flat, block, cuts, quotes, ord(delimiter))
    first, behind = np.searchsorted(cuts, starts), np.searchsorted(cuts, ends)
    most = max(places) + 1
    split = {int(row): _split(block.data[starts[row] : ends[row]], delimiter, most) for row in odd}
    found = []
    for place in places:
        at = first + place
        begin = starts if place == 0 else _taken(cuts, at - 1) + 1
        end = np.where(at < behind, _taken(cuts, at), ends)
        there = at <= behind
        begin, end = np.where(there, begin, 0), np.where(there, end, 0)
        texts: dict[int, bytes] = {}
        if len(quotes):
            quoted = (end > begin) & (flat[begin] == QUOTE)
            begin, end = begin + quoted, end - quoted
            rows = np.flatnonzero(quoted)
            ahead = np.searchsorted(quotes, begin[rows])
            for row in rows[np.searchsorted(quotes, end[rows]) > ahead].tolist():
                texts[row] = block.data[begin[row] : end[row]].replace(b'""', b'"')
        for row, each in split.items():
            texts[row] = each[place] if place < len(each) else b""
        found.append(_texts(block.data, begin, end, texts))
    return found


def whole(block: Block) -> pa.Array:
    """The records of a block as texts."""
    return _texts(block.data, block.starts, block.ends, {})


@dataclass(frozen=True, slots=True)
class LineStream:
    """Columns of the records of files, one file after another, read anew for each scan.

    Args:
        files: In order.
        delimiter: Between fields of CSV; None for one column, the line.
        places: Of the fields that are columns, in the order of the header.
        quoted_newlines: See `blocks`.
    """

    files: tuple[str, ...]
    delimiter: str | None = None
    places: tuple[int, ...] = ()
    quoted_newlines: bool = False

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A scan; see the Arrow PyCapsule interface."""
        import pyarrow as pa

        schema = self._schema()
        batches = (pa.record_batch(columns, schema=schema) for columns in self._columns())
        return pa.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(
            requested_schema
        )

    def _schema(self) -> pa.Schema:
        """Columns `field_0`, `field_1` and so on; one of nothing if none is named."""
        import pyarrow as pa

        if self.delimiter is not None and not self.places:
            return pa.schema([("nothing", pa.null())])
        return pa.schema(
            [(f"field_{number}", pa.string_view()) for number in range(len(self.places) or 1)]
        )

    def _columns(self) -> Iterator[list[pa.Array]]:
        import pyarrow as pa

        header = self.delimiter is not None
        for file in self.files:
            for block in blocks(file, header=header, quoted_newlines=self.quoted_newlines):
                if self.delimiter is None:
                    yield [whole(block)]
                elif self.places:
                    yield fields(block, self.delimiter, self.places)
                else:
                    yield [pa.nulls(len(block.starts))]


def _read(file: str) -> Iterator[bytes]:
    """The bytes of a file behind its byte order mark, if it has one."""
    with unpacked(file) as opened:
        start = opened.read(len(BYTE_ORDER_MARK))
        if start != BYTE_ORDER_MARK:
            yield start
        while read := opened.read(BLOCK):
            yield read


def _decodable(block: Block) -> Block:
    """The records of a block that are UTF-8."""
    if block.data.isascii() or _is_utf8(block.data):
        return block
    flat = block.flat()
    high = np.flatnonzero(flat > 0x7F)
    kept = np.ones(len(block.starts), np.bool_)
    for row in np.flatnonzero(
        np.searchsorted(high, block.ends) > np.searchsorted(high, block.starts)
    ):
        kept[row] = _is_utf8(block.data[block.starts[row] : block.ends[row]])
    return block.only(kept)


def _is_utf8(data: bytes) -> bool:
    """Whether bytes are a text; Arrow looks at them without making one."""
    import pyarrow as pa

    offsets = pa.py_buffer(np.array([0, len(data)], np.int64))
    text = pa.Array.from_buffers(pa.large_utf8(), 1, [None, offsets, pa.py_buffer(data)])
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _outside_quotes(
    flat: Bytes, block: Block, cuts: IntArray, quotes: IntArray, delimiter: int
) -> tuple[IntArray, IntArray]:
    """Delimiters behind an even number of quotes of their record, and records with odd quotes.

    These delimiters say where the fields are if each quote of a record opens a field, ends one, or
    is doubled; other records are odd. Where none is, they are found without looking at each record.
    """
    inside = (np.cumsum(flat == QUOTE, dtype=np.uint8) & 1).astype(np.bool_)
    opens = inside[quotes]
    at_start = inside[block.starts - 1] & (block.starts > 0)
    if not (at_start.any() or inside[block.ends - 1].any()):
        well = _stand_well(flat, quotes, opens, delimiter) | (quotes == 0)
        if well.all():
            return cuts[~inside[cuts]], np.zeros(0, np.int64)
    return _by_record(flat, block, cuts, quotes, delimiter)


def _by_record(
    flat: Bytes, block: Block, cuts: IntArray, quotes: IntArray, delimiter: int
) -> tuple[IntArray, IntArray]:
    """The same, with quotes counted from the start of each record."""
    first, behind = np.searchsorted(quotes, block.starts), np.searchsorted(quotes, block.ends)
    number = behind - first
    rows = np.repeat(np.arange(len(number)), number)
    here = np.arange(len(rows)) + np.repeat(first - np.cumsum(number) + number, number)
    quotes, opens = quotes[here], (here - first[rows]) % 2 == 0
    beside = flat[np.where(opens, quotes - 1, quotes + 1)]
    at_border = np.where(opens, quotes == block.starts[rows], quotes + 1 == block.ends[rows])
    well = at_border | (beside == delimiter) | (beside == QUOTE)
    odd = np.union1d(rows[~well], np.flatnonzero(number % 2))
    before = np.searchsorted(quotes, cuts)
    if (number % 2).any():  # else all quotes of all records before are an even number
        behind_them = np.concatenate(([0], np.cumsum(number)))
        before = before - behind_them[np.searchsorted(block.starts, cuts, "right") - 1]
    return cuts[before % 2 == 0], odd


def _split(record: bytes, delimiter: str, most: int) -> list[bytes]:
    """The first fields of one record, whatever its quotes are."""
    other = b"[^" + re.escape(delimiter).encode() + b"]*"
    field = re.compile(rb'"([^"]*(?:""[^"]*)*)(?:"(' + other + rb"))?|(" + other + rb")")
    found: list[bytes] = []
    at = 0
    while len(found) < most:
        match = field.match(record, at)
        assert match is not None  # noqa: S101  # the last alternative takes anything
        inside, rest, plain = match.groups()
        found.append(plain if inside is None else inside.replace(b'""', b'"') + (rest or b""))
        at = match.end() + 1
        if at > len(record):
            break
    return found


def _stand_well(flat: Bytes, quotes: IntArray, opens: Mask, delimiter: int) -> Mask:
    """Whether quotes of a file stand behind or before a border of a field, or another quote."""
    before, after = flat[quotes - 1], flat[quotes + 1]
    beside = np.where(opens, before, after)
    line_end = ~opens & (after == CARRIAGE_RETURN) & (flat[quotes + 2] == LINE_FEED)
    well: Mask = (beside == delimiter) | (beside == QUOTE) | (beside == LINE_FEED) | line_end
    return well


def _taken(cuts: IntArray, at: IntArray) -> IntArray:
    """Places of delimiters by number; anything where there is none."""
    if not len(cuts):
        return np.zeros(len(at), np.int64)
    return cuts[np.clip(at, 0, len(cuts) - 1)]


def _texts(data: bytes, begin: IntArray, end: IntArray, others: Mapping[int, bytes]) -> pa.Array:
    """Texts between places of the data, some rows replaced by others; null where empty."""
    import pyarrow as pa

    buffers = [data]
    if others:
        rows = np.fromiter(others, np.int64, len(others))
        begin, end = begin.copy(), end.copy()
        begin[rows] = end[rows] = 0
    views = _views(np.frombuffer(data, np.uint8), begin, end, 0)
    if others:
        behind = np.cumsum([len(text) for text in others.values()])
        buffers.append(b"".join((*others.values(), _PAD)))
        ahead = np.concatenate(([0], behind[:-1]))
        views[rows] = _views(np.frombuffer(buffers[1], np.uint8), ahead, behind, 1)
    there = np.packbits(views[:, 0] > 0, bitorder="little")
    held = [pa.py_buffer(there), pa.py_buffer(views), *map(pa.py_buffer, buffers)]
    return pa.Array.from_buffers(pa.string_view(), len(begin), held)


def _views(flat: Bytes, begin: IntArray, end: IntArray, buffer: int) -> npt.NDArray[np.uint32]:
    """Arrow's string views: a length, and up to twelve bytes or the first four and the place."""
    length = end - begin
    views = np.empty((len(begin), 4), np.uint32)
    views[:, 0] = length
    words = np.lib.stride_tricks.as_strided(flat, (len(flat) - 3, 4), (1, 1), writeable=False)
    for word in range(3):
        at = np.minimum(begin + 4 * word, len(flat) - 4)
        views[:, word + 1] = words[at].view(np.uint32)[:, 0]
        views[:, word + 1] &= _MASKS[np.clip(length - 4 * word, 0, 4)]
    far = np.flatnonzero(length > _INLINE)
    views[far, 2] = buffer
    views[far, 3] = begin[far]
    return views
