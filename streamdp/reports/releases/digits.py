"""Digits that numbers are shown with: two of the width of an interval, or so many in all."""

from __future__ import annotations

import math


def of_width(width: float) -> int:
    """Digits after the point that an interval supports; below 0 it supports tens or hundreds.

    >>> of_width(36.0), of_width(0.09), of_width(4100.0)
    (0, 3, -2)
    """
    return 1 - math.floor(math.log10(width))


def of_size(number: float, digits: int) -> int:
    """Digits after the point of a number, not 0, that has so many digits in all.

    >>> of_size(131.7, 3), of_size(-0.0952, 2)
    (0, 3)
    """
    return digits - 1 - math.floor(math.log10(abs(number)))


def from_0_on(value: float, lower: float, upper: float) -> tuple[float, float, float] | None:
    """What is never negative as people are told it; None where noise took all of it below 0.

    >>> from_0_on(3.0, -2.0, 8.0), from_0_on(-1.0, -4.0, 2.0), from_0_on(-9.0, -12.0, -6.0)
    ((3.0, 0.0, 8.0), (0.0, 0.0, 2.0), None)
    """
    if upper < 0:
        return None
    return max(value, 0.0), max(lower, 0.0), max(upper, 0.0)


def written(number: float, digits: int) -> str:
    """A number with so many digits after the point; nought has no sign.

    >>> written(1234.56, 1), written(1234.56, -2), written(-0.2, 0)
    ('1,234.6', '1,200', '0')
    """
    return f"{round(number, digits) + 0.0:,.{max(digits, 0)}f}"
