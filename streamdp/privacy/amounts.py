"""Privacy amounts: exact rationals inside, integers of 1e-9 (nano) in the ledger, rounded up."""

from __future__ import annotations

import math
from fractions import Fraction

NANO = 10**9
"""Units of the ledger in one epsilon."""


def nano_up(amount: Fraction) -> int:
    """Smallest number of nano units that covers `amount`; a spend is never nothing.

    >>> nano_up(Fraction(1, 3)), nano_up(Fraction(1, 10**30))
    (333333334, 1)
    """
    return max(1, math.ceil(amount * NANO))


def exact(number: float | int | str | Fraction) -> Fraction:
    """The rational a person wrote: 0.1 is 1/10, "1/3" is one third.

    >>> exact(0.1), exact("1/3")
    (Fraction(1, 10), Fraction(1, 3))

    Raises:
        ValueError: Not a finite number.
    """
    if isinstance(number, Fraction):
        return number
    try:
        return Fraction(repr(number) if isinstance(number, float) else str(number).strip())
    except (ValueError, ZeroDivisionError, OverflowError):
        raise ValueError(f"{number!r} is not a finite number") from None


def epsilon_text(nano: int) -> str:
    """An amount of nano units as a person reads it.

    >>> epsilon_text(100_000_000), epsilon_text(1)
    ('0.1', '0.000000001')
    """
    sign = "-" if nano < 0 else ""
    whole, rest = divmod(abs(nano), NANO)
    return f"{sign}{whole}.{rest:09d}".rstrip("0").rstrip(".") if rest else f"{sign}{whole}"
