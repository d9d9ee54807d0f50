"""Arrow values as ones that DuckDB reads.

DuckDB reads Arrow's memory as it is, and what it cannot represent ends the question: a time in
seconds that has no microseconds would be one record that decides about all. So each value is made
one that DuckDB has, or null, before it is handed over:

- a dictionary- or run-end-encoded value is the value; files encode as many as they have;
- half floats are floats, the same numbers;
- text that is no UTF-8 is null: DuckDB would not answer again on that connection;
- a decimal with more digits than its type is the largest, or the most negative, of the type;
- times and durations in seconds or milliseconds are in microseconds, null where there are none so
  far away; a zone is a way to show an instant, and is dropped for UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST = 2**63 - 1

FIRST = 9_223_372_022_400_000_000
"""Microseconds before 1970 of the first moment that DuckDB casts."""


def plain_type(kind: Any) -> pa.DataType | None:
    """The type that is handed over, or None if there is none."""
    import pyarrow as pa

    is_a = pa.types
    if is_a.is_dictionary(kind) or is_a.is_run_end_encoded(kind):
        inner = kind.value_type
        nested = is_a.is_dictionary(inner) or is_a.is_run_end_encoded(inner)
        view = is_a.is_string_view(inner) or is_a.is_binary_view(inner)
        unread = is_a.is_run_end_encoded(kind) and view
        return None if nested or unread else plain_type(inner)
    if is_a.is_string_view(kind):
        return pa.large_string()
    if is_a.is_binary_view(kind):
        return pa.large_binary()
    if is_a.is_float16(kind):
        return pa.float32()
    if is_a.is_timestamp(kind):
        unit = "ns" if kind.unit == "ns" else "us"
        return pa.timestamp(unit, None if kind.tz is None or unit == "ns" else "UTC")
    if is_a.is_duration(kind):
        return pa.duration("ns" if kind.unit == "ns" else "us")
    if is_a.is_decimal256(kind):
        return None
    if isinstance(kind, pa.UuidType):
        return kind
    kept: list[Callable[[pa.DataType], bool]] = [
        *(is_a.is_boolean, is_a.is_integer, is_a.is_floating, is_a.is_decimal, is_a.is_date32),
        *(is_a.is_string, is_a.is_large_string, is_a.is_null),
        *(is_a.is_binary, is_a.is_large_binary, is_a.is_fixed_size_binary),
    ]
    return kind if any(is_kept(kind) for is_kept in kept) else None


def plain(values: Any, kind: Any) -> Any:
    """Values of one column, of the type that is handed over."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_null(values.type):
        return pa.nulls(len(values), kind)
    if pa.types.is_run_end_encoded(values.type):
        values = pc.run_end_decode(values)
    if pa.types.is_dictionary(values.type):
        words = _long(values.dictionary)
        values = pa.DictionaryArray.from_arrays(values.indices, words).dictionary_decode()
    values = _long(values)
    if kind in (pa.string(), pa.large_string()):
        return _text(values)
    if pa.types.is_decimal(kind):
        return _decimal(values, kind)
    moment = pa.types.is_timestamp(kind)
    if values.type == kind and not (moment and kind.unit == "us"):
        return values
    if pa.types.is_float16(values.type):
        return values.cast(kind)
    factor = {"s": 10**6, "ms": 10**3}.get(values.type.unit, 1)
    ticks, far = values.view(pa.int64()), LARGEST // factor
    first = -FIRST // factor if moment else -far
    near = pc.and_(pc.greater_equal(ticks, first), pc.less_equal(ticks, far))
    ticks = pc.if_else(near, ticks, pa.scalar(None, pa.int64()))
    return pc.multiply(ticks, factor).view(kind)


def stored_type(kind: Any) -> pa.DataType:
    """The type of a column of Parquet as it is stored, which is what DuckDB reads.

    Writers note a type of their own beside it; readers that know nothing of it must not differ.
    """
    import pyarrow as pa

    if pa.types.is_duration(kind):
        return pa.int64()
    if isinstance(kind, pa.JsonType):
        return stored_type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return stored_type(kind.value_type)
    return kind


def stored(values: Any) -> Any:
    """Values of a column of Parquet as they are stored."""
    import pyarrow as pa

    if pa.types.is_duration(values.type):
        return values.view(pa.int64())
    return stored(values.storage) if isinstance(values.type, pa.JsonType) else values


def no_longer(values: Any, longest: int) -> Any:
    """Texts or bytes, null where they have more bytes than that; other values as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        words = no_longer(values.dictionary, longest)
        return pa.DictionaryArray.from_arrays(values.indices, words)
    try:
        short = pc.less_equal(pc.binary_length(values), longest)
    except pa.ArrowNotImplementedError:
        return values
    return values if pc.all(short, min_count=0).as_py() else pc.if_else(short, values, None)


def _decimal(values: Any, kind: Any) -> Any:
    """Replace values of too many digits by the nearest value of the type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    low, high = (
        pa.scalar(Decimal((sign, (9,) * kind.precision, -kind.scale)), kind) for sign in (1, 0)
    )
    values = pc.if_else(pc.less(values, low), low, values)
    return pc.if_else(pc.greater(values, high), high, values)


def _long(values: Any) -> Any:
    """Text and bytes in place of views of them, so that they can be looked up by number."""
    import pyarrow as pa

    if pa.types.is_binary_view(values.type):
        return values.cast(pa.large_binary())
    return values.cast(pa.large_string()) if pa.types.is_string_view(values.type) else values


def _text(values: Any) -> Any:
    """Replace texts that are not UTF-8 by nulls."""
    import pyarrow as pa

    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        short = pa.types.is_string(values.type)
        raw = values.view(pa.binary() if short else pa.large_binary())
        raw.validate(full=True)
        return pa.array([_decoded(each) for each in raw.to_pylist()], values.type)
    return values


def _decoded(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError:
        return None
