"""SQL of parts of a time by the clocks of a zone, as arithmetic on seconds since 1970 UTC.

An engine's own conversions differ: some need tables that may be missing, or end a query at a time
that is out of range, which one record must not be able to cause. So each is given the same steps
between public moments. A date is a day already, and no clock moves it. The calendar is the
Gregorian one, with years before its introduction counted as it would have counted them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamdp.backends.sql.words import Words
from streamdp.types import Dimension
from streamdp.zones import offsets

FARTHEST = 1e14
"""Seconds; every time of every engine is nearer to 1970."""

_EPOCH = 719_468
"""Days from the first of March of the year 0 to 1970."""

_CYCLE = 146_097
"""Days in which the calendar repeats."""


def steps(words: Words, axis: Dimension, x: str, kind: str) -> Iterator[tuple[str, str]]:
    """Columns that lead from seconds to the cell of a clock, each made of those before it.

    Args:
        words: Of the engine.
        axis: With a clock.
        x: Column with the seconds; null where there is no time.
        kind: The engine's type of the time.
    """
    assert axis.clock is not None, "asked for axes with a clock alone"  # noqa: S101
    double, part = words.double, axis.clock.part
    local = x
    if kind.lower() != "date":
        first, moves = offsets(axis.clock.zone)
        local = f"({x} + {_offset(words, moves, x, first)})"
    if part == "hour":
        yield f"{x}_hour", f"floor({local} / {double(3600.0)})"
        return
    shift = 3 if part == "weekday" else _EPOCH
    yield f"{x}_day", f"floor({local} / {double(86400.0)}) + {double(float(shift))}"
    if part == "weekday":
        return
    yield f"{x}_left", _modulo(words, f"{x}_day", _CYCLE)
    left = f"{x}_left"
    leaps = (f"floor({left} / {double(float(days))})" for days in (1460, 36_524, 146_096))
    fourth, hundredth, last = leaps
    yield (
        f"{x}_year",
        f"floor(({left} - {fourth} + {hundredth} - {last}) / {double(365.0)})",
    )
    year = f"{x}_year"
    past = f"{double(365.0)} * {year} + floor({year} / {double(4.0)})"
    day = f"({left} - ({past} - floor({year} / {double(100.0)})))"
    yield f"{x}_month", f"floor(({double(5.0)} * {day} + {double(2.0)}) / {double(153.0)})"


def cell(words: Words, axis: Dimension, x: str) -> str:
    """Cell of a clock from the last of the steps; months begin with March there."""
    assert axis.clock is not None, "asked for axes with a clock alone"  # noqa: S101
    part = axis.clock.part
    if part == "month":
        found = f"CASE WHEN {x}_month < 10 THEN {x}_month + 2 ELSE {x}_month - 10 END"
    elif part == "hour":
        found = _modulo(words, f"{x}_hour", 24)
    else:
        found = _modulo(words, f"{x}_day", 7)
    near = f"{x} BETWEEN {words.double(-FARTHEST)} AND {words.double(FARTHEST)}"
    null = axis.size if axis.null_cell is None else axis.null_cell
    return f"CAST(CASE WHEN {near} THEN {found} ELSE {null} END AS {words.whole})"


def _modulo(words: Words, value: str, by: int) -> str:
    """What is left of a whole number, from 0 up."""
    divisor = words.double(float(by))
    return f"({value} - {divisor} * floor({value} / {divisor}))"


def _offset(words: Words, moves: Sequence[tuple[int, int]], x: str, first: int) -> str:
    """Seconds by which clocks are ahead of UTC, by halving."""
    if not moves:
        return words.double(float(first))
    middle = len(moves) // 2
    moment, then = moves[middle]
    early = _offset(words, moves[:middle], x, first)
    late = _offset(words, moves[middle + 1 :], x, then)
    return f"CASE WHEN {x} < {words.double(float(moment))} THEN {early} ELSE {late} END"
