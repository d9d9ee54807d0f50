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

The files of a source are a SELECT over their lines.

A column has the type that the configuration declares for it, and a value that is none of that type
is null. Columns are cut out of lines where a question names them, and there are no others.

The dialect of a CSV file is read off its header line alone. A dialect guessed from the rows, as
engines like to do, would let one record decide how all the others are read. The header is public;
the delimiter is the candidate that stands in it most often.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from streamdp.backends.sql.dialect import quoted
from streamdp.errors import SourceError
from streamdp.types import File, IntArray
from streamdp.types.forms import has_time_of_day

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


LONGEST = 2**20
"""Bytes of the longest record, without its line end."""

LINE_MEMORY = 2**26
"""Bytes that the engine may take in each thread to read lines of JSON, whatever is in them."""

BLOCK = 2**19
"""Bytes of a file that are looked at together."""

QUOTE, LINE_FEED, CARRIAGE_RETURN = b'"\n\r'
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_PAD = bytes(16)
"""Behind the bytes of a block, so that twelve can be looked at from each of them."""

_INLINE = 12
"""Bytes of a text that a string view holds itself."""

_MASKS = np.tril(np.full((_INLINE + 1, _INLINE), 0xFF, np.uint8), -1).view(np.uint32)
"""Masks by length of the bytes of a text that a string view holds."""

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
    """Lines of a file, one behind the other.

    Args:
        data: The bytes they lie in, from the first on.
        starts: Where each begins.
        ends: Where each ends, behind its last byte, without the line end.
        stops: Where its line feed is; the next line begins behind it.
        kept: Which of them are records.
    """

    data: bytes
    starts: IntArray
    ends: IntArray
    stops: IntArray
    kept: Mask

    def flat(self) -> Bytes:
        """The bytes as numbers."""
        return np.frombuffer(self.data, np.uint8)


def blocks(file: str, *, header: bool, quoted_newlines: bool = False) -> Iterator[Block]:
    """Split a file into its lines, and say which of them are records.

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
            starts, stops = np.concatenate(([0], ends[:-1] + 1)), ends
            ends = ends - ((ends > starts) & (flat[ends - 1] == CARRIAGE_RETURN))
            kept = (ends > starts) & (ends - starts <= LONGEST)
            kept[0] &= not (skipping or (first and header))
            first = skipping = False
            yield _decodable(Block(data, starts, ends, stops, kept))
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
    found = _marks(block, ord(delimiter))
    stops = found.stops
    before = np.concatenate(([-1], stops[:-1]))
    kept = block.kept
    records = (block.starts[kept], block.ends[kept], before[kept], stops[kept])
    starts, ends, *_ = records
    most, rows = max(places) + 1, np.flatnonzero(found.odd[kept]).tolist()
    split = {row: _split(block.data[starts[row] : ends[row]], delimiter, most) for row in rows}
    return [_field(block, found, place, records, split) for place in places]


def whole(block: Block) -> pa.Array:
    """The records of a block as texts."""
    return _texts(block.data, block.starts[block.kept], block.ends[block.kept], {})


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
                    yield [pa.nulls(int(block.kept.sum()))]


def _read(file: str) -> Iterator[bytes]:
    """The bytes of a file behind its byte order mark, if it has one."""
    with unpacked(file) as opened:
        start = opened.read(len(BYTE_ORDER_MARK))
        if start != BYTE_ORDER_MARK:
            yield start
        while read := opened.read(BLOCK):
            yield read


def _decodable(block: Block) -> Block:
    """The lines of a block, of which those that are no UTF-8 are no records."""
    if block.data.isascii() or _is_utf8(block.data):
        return block
    flat, kept = block.flat(), block.kept.copy()
    high = np.flatnonzero(flat > 0x7F)
    odd = np.searchsorted(high, block.ends) > np.searchsorted(high, block.starts)
    for row in np.flatnonzero(odd & kept):
        kept[row] = _is_utf8(block.data[block.starts[row] : block.ends[row]])
    return replace(block, kept=kept)


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


@dataclass(frozen=True, slots=True)
class _Marks:
    """Bytes of a block that part its fields.

    Args:
        at: Where delimiters outside of quotes and ends of lines are, in order.
        stops: Which of them end the lines.
        quotes: Where all quotes are.
        odd: Lines whose quotes stand elsewhere than around fields and doubled in them; their fields
            are not known by marks.
    """

    at: IntArray
    stops: IntArray
    quotes: IntArray
    odd: Mask


def _marks(block: Block, delimiter: int) -> _Marks:
    """Marks of a block; in one whose quotes all stand well no line is looked at by itself."""
    size = int(block.stops[-1]) + 1
    flat = block.flat()
    read = flat[:size]
    looked_at = (read == delimiter) | (read == LINE_FEED)
    lines, odd = len(block.stops), np.zeros(len(block.stops), np.bool_)
    if block.data.find(b'"', 0, size) < 0:
        at = np.flatnonzero(looked_at)
        return _Marks(at, np.flatnonzero(flat[at] == LINE_FEED), at[:0], odd)
    at = np.flatnonzero(looked_at | (read == QUOTE))
    kinds = flat[at]
    is_quote = kinds == QUOTE
    kept = (np.cumsum(is_quote, dtype=np.uint8) & 1) == 0
    kept &= ~is_quote
    quotes, at = at[is_quote], at[kept]
    stops = np.flatnonzero(kinds[kept] == LINE_FEED)
    if len(stops) == lines and np.array_equal(at[stops], block.stops):
        opens = np.arange(len(quotes)) % 2 == 0
        well = _stand_well(flat, quotes, opens, delimiter)
        if well[1:].all() and (well[0] or quotes[0] == 0):
            return _Marks(at, stops, quotes, odd)
    return _marks_by_line(block, np.flatnonzero(read == delimiter), quotes, delimiter)


def _marks_by_line(block: Block, cuts: IntArray, quotes: IntArray, delimiter: int) -> _Marks:
    """Find marks with quotes counted from the start of each line."""
    flat, starts, ends = block.flat(), block.starts, block.ends
    ahead = np.searchsorted(quotes, starts)
    number = np.diff(ahead, append=len(quotes))
    lines = np.repeat(np.arange(len(number)), number)
    opens = (np.arange(len(quotes)) - ahead[lines]) % 2 == 0
    beside = flat[np.where(opens, quotes - 1, quotes + 1)]
    at_border = np.where(opens, quotes == starts[lines], quotes + 1 == ends[lines])
    well = at_border | (beside == delimiter) | (beside == QUOTE)
    odd = number % 2 == 1
    odd[lines[~well]] = True
    line = np.searchsorted(starts, cuts, "right") - 1
    cuts = cuts[(np.searchsorted(quotes, cuts) - ahead[line]) % 2 == 0]
    at = np.sort(np.concatenate((cuts, block.stops)))
    return _Marks(at, np.searchsorted(at, block.stops), quotes, odd)


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
    beside = flat[quotes + np.where(opens, -1, 1)]
    well: Mask = (beside == delimiter) | (beside == QUOTE) | (beside == LINE_FEED)
    returns = np.flatnonzero(~opens & (beside == CARRIAGE_RETURN))
    well[returns] = flat[quotes[returns] + 2] == LINE_FEED
    return well


def _field(
    block: Block,
    marks: _Marks,
    place: int,
    records: tuple[IntArray, IntArray, IntArray, IntArray],
    split: Mapping[int, list[bytes]],
) -> pa.Array:
    """One field of each record: where it begins and ends, by which marks; or as it was split."""
    starts, ends, before, stops = records
    behind = before + 1 + place
    there = behind <= stops
    behind = np.minimum(behind, stops)
    begin = starts if place == 0 else marks.at[behind - 1] + 1
    end = np.where(behind < stops, marks.at[behind], ends)
    if place:
        begin, end = np.where(there, begin, 0), np.where(there, end, 0)
    texts = {row: each[place] if place < len(each) else b"" for row, each in split.items()}
    if len(marks.quotes):
        quoted = (end > begin) & (block.flat()[begin] == QUOTE)
        begin, end = begin + quoted, end - quoted
        rows = np.flatnonzero(quoted)
        ahead = np.searchsorted(marks.quotes, begin[rows])
        for row in rows[np.searchsorted(marks.quotes, end[rows]) > ahead].tolist():
            if row not in split:
                texts[row] = block.data[begin[row] : end[row]].replace(b'""', b'"')
    return _texts(block.data, begin, end, texts)


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
    first: npt.NDArray[np.void] = np.ndarray((len(flat) - 11,), "V12", flat, strides=(1,))
    words = first[begin].view(np.uint32).reshape(-1, 3)
    np.bitwise_and(words, _MASKS[np.minimum(length, _INLINE)], out=views[:, 1:])
    far = np.flatnonzero(length > _INLINE)
    views[far, 2] = buffer
    views[far, 3] = begin[far]
    return views


TABLE = "lines_of_files"
"""Name of the lines in DuckDB."""


@dataclass(slots=True)
class TextFiles:
    """The text files of a source.

    Args:
        is_csv: Whether they are CSV; else they are JSON lines.
        types: Declared types of columns, by name; other columns are text.
        quoted_newlines: Whether line ends in quotes are text, in CSV.
        columns: All that the files have; of JSON lines, those that are declared.
    """

    is_csv: bool
    types: Mapping[str, str] = field(default_factory=dict)
    quoted_newlines: bool = False
    columns: tuple[str, ...] = field(default=(), init=False)
    _looked_at: set[File] = field(default_factory=set, init=False, repr=False)

    def select(
        self,
        connection: duckdb.DuckDBPyConnection,
        files: Sequence[File],
        named: Sequence[str],
        *,
        chosen: bool = True,
    ) -> str:
        """Register the lines of files with a connection; return SQL of the named columns.

        Args:
            connection: That has the lines.
            files: In order.
            named: Columns.
            chosen: Whether the question has conditions, by which some records are left out.

        Raises:
            SourceError: A file cannot be read to its end, or is not as the others are.
        """
        asked = {name.lower() for name in named}
        if self.is_csv:
            return self._csv(connection, files, asked)
        self.columns = tuple(self.types)
        self._look_at(files)
        connection.register(TABLE, LineStream(tuple(file.path for file in files)))
        names = [name for name in self.columns if name.lower() in asked]
        columns = ", ".join(
            self._typed(f"found[{place}]", name) for place, name in enumerate(names, start=1)
        )
        places = ", ".join(quoted(_place(name), "'") for name in names)
        found = f"TRY(json_extract_string(field_0, [{places}]::VARCHAR[]))"
        if chosen:
            # DuckDB would take conditions below, read each line once more for them, and gather the
            # lines that are left by the thousand, to read them all at once. None goes below this.
            found = f"unnest([{found}])"
        return (
            f"SELECT {columns or '1 AS one'} FROM (SELECT {found} AS found FROM {TABLE}) AS lines"
        )

    def _csv(
        self, connection: duckdb.DuckDBPyConnection, files: Sequence[File], asked: set[str]
    ) -> str:
        """The named columns; files of no bytes have neither a header nor a record."""
        dialects = {file: _dialect(file.path) for file in files}
        kinds = set(dialects.values()) - {None}
        if len(kinds) > 1:
            raise SourceError(
                "the files do not all have one header line",
                where=files[0].path,
                hint="files of one source need the same columns in the same order",
            )
        dialect = next(iter(kinds), None)
        if dialect is None:
            columns = ", ".join(self._typed("CAST(NULL AS VARCHAR)", name) for name in asked)
            return f"SELECT {columns or '1 AS one'} WHERE false"
        self.columns = dialect.columns
        read = [file for file, each in dialects.items() if each is not None]
        self._look_at(read, dialect.delimiter)
        places = [place for place, name in enumerate(self.columns) if name.lower() in asked]
        paths = tuple(file.path for file in read)
        stream = LineStream(paths, dialect.delimiter, tuple(places), self.quoted_newlines)
        connection.register(TABLE, stream)
        columns = ", ".join(
            self._typed(f"field_{number}", self.columns[place])
            for number, place in enumerate(places)
        )
        return f"SELECT {columns or '1 AS one'} FROM {TABLE}"

    def _look_at(self, files: Sequence[File], delimiter: str = "") -> None:
        """Look through files that could not be read to their end, once in each of their states."""
        for file in files:
            if file not in self._looked_at:
                require_whole(file.path)
                if self.quoted_newlines:
                    require_well_formed(file.path, delimiter)
        self._looked_at = set(files)

    def _typed(self, text: str, name: str) -> str:
        name_sql = quoted(name, '"')
        return f"{typed(text, self.types.get(name, 'text'))} AS {name_sql}"


def _dialect(path: str) -> Dialect | None:
    """The dialect of a file, from its first line; None if it has no bytes."""
    header = header_of(path)
    return None if header is None else dialect_of(header, path)


def _place(column: str) -> str:
    """Where in an object a value stands: a JSON path, or a JSON pointer for a name with quotes."""
    if '"' in column or "\\" in column:
        return "/" + column.replace("~", "~0").replace("/", "~1")
    return f'$."{column}"'


TYPES = {
    "number": "DOUBLE",
    "timestamp": "TIMESTAMPTZ",
    "date": "DATE",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
}
"""Types that the engine reads by itself. A time without an offset is UTC."""

_COMMA = r"\s*[-+]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?\s*"
"""A point stands between thousands only: `12.5` would otherwise be read as 125."""


def typed(text: str, declared: str) -> str:
    """SQL of the value that a text has under a declared type; it looks at this text alone.

    Args:
        text: SQL of the text.
        declared: One of `FIELD_TYPES`, or how dates or times are written.
    """
    if declared == "text":
        return text
    if declared in TYPES:
        return f"TRY_CAST({text} AS {TYPES[declared]})"
    if declared == "decimal-comma":
        fits = f"regexp_full_match({text}, {quoted(_COMMA, chr(39))})"
        number = f"replace(replace({text}, '.', ''), ',', '.')"
        return f"TRY_CAST(CASE WHEN {fits} THEN {number} END AS DOUBLE)"
    kind = "TIMESTAMPTZ" if has_time_of_day(declared) else "DATE"
    return f"TRY_CAST(TRY_STRPTIME({text}, {quoted(declared, chr(39))}) AS {kind})"


DELIMITERS = (",", ";", "\t", "|")

LONGEST_HEADER = 2**16
"""Bytes that a header line may have."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the rows of a file are cut.

    Args:
        delimiter: Between fields.
        columns: Names in the order of the header.
    """

    delimiter: str
    columns: tuple[str, ...]


def dialect_of(header: str, file: str = "") -> Dialect:
    """The dialect that a header line tells; a column without a name has its place for one.

    Raises:
        SourceError: The line is no header.

    >>> dialect_of('date;"air; time"')
    Dialect(delimiter=';', columns=('date', 'air; time'))
    >>> dialect_of(",x").columns
    ('column 1', 'x')
    """
    delimiter = max(DELIMITERS, key=header.count)
    if header.count('"') % 2:
        raise _no_header("has a quote that does not end", file, "names have no line breaks")
    try:
        (found,) = csv.reader([header], delimiter=delimiter)
    except csv.Error:
        raise _no_header("cannot be cut into names", file) from None
    names = tuple(name or f"column {place}" for place, name in enumerate(found, start=1))
    if len({name.lower() for name in names}) < len(names):
        hint = "names that differ in capitals alone are one name; is the first line a header?"
        raise _no_header("names a column twice", file, hint)
    return Dialect(delimiter, names)


def header_of(file: str) -> str | None:
    """The first line of a file, unpacked; None if it has no bytes.

    No later line is taken for it: the error that names the columns of a file would show a record.

    Raises:
        SourceError: It cannot be read, or is no line of text in UTF-8.
    """
    try:
        with unpacked(file) as opened:
            start = opened.read(LONGEST_HEADER + 2)
    except OSError:
        hint = "is it there, readable, and compressed as its ending says?"
        raise SourceError("a file cannot be opened", where=file, hint=hint) from None
    if not start:
        return None
    line = start.partition(b"\n")[0].removesuffix(b"\r")
    if b"\r" in line:
        raise _no_header("has a carriage return in it", file, "lines end with LF or CRLF")
    if len(line) > LONGEST_HEADER:
        raise _no_header("is too long", file)
    try:
        header = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        hint = "write the file in UTF-8; a compressed file ends in .gz or .zst"
        raise _no_header("is no UTF-8", file, hint) from None
    if not header.strip():
        raise _no_header("is empty", file)
    return header


def _no_header(how: str, file: str, hint: str = "the first line names the columns") -> SourceError:
    return SourceError(f"the first line of a CSV file {how}", where=file, hint=hint)
