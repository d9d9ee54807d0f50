"""Privacy amounts: exact rationals inside, integers in the ledger, rounded up.

Epsilon and rho are counted in 1e-9 (nano), delta in 1e-18 (atto).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

NANO = 10**9
"""Units of the ledger in one epsilon."""

ATTO = 10**18
"""Units of the ledger in a delta of one."""


Losses = tuple[int | None, int, int]
"""Amounts of a charge in the ledger's units: pure loss or none, zero-concentrated loss, delta."""


UNBOUNDED = 10**30
"""Stands for a loss that has no bound, in sums and comparisons; it is never stored."""

NO_PURE_LOSS = (
    "Gaussian noise has no pure epsilon: give the cap in rho ({rho: 0.1}) or in epsilon and delta"
    " ({epsilon: 1, delta: 1e-9}), or give the release an epsilon in place of rho"
)
"""The hint where a cap in epsilon meets a charge that has only rho."""


def nano_up(amount: Fraction) -> int:
    """Smallest number of nano units that covers `amount`; a spend is never nothing.

    >>> nano_up(Fraction(1, 3)), nano_up(Fraction(1, 10**30))
    (333333334, 1)
    """
    return max(1, math.ceil(amount * NANO))


def atto_up(delta: Fraction) -> int:
    """Smallest number of atto units that covers a delta; none for none.

    >>> atto_up(Fraction(1, 10**9)), atto_up(Fraction(1, 10**30)), atto_up(Fraction(0))
    (1000000000, 1, 0)
    """
    return math.ceil(delta * ATTO)


NO_DELTA = (
    "give its caps a delta of their own: privacy.caps.delta: {lifetime: 1e-6}; where the ledger"
    " knows the source already, `streamdp cap` then takes it over"
)
"""The hint where a charge with a delta meets caps without."""


def delta_text(atto: int) -> str:
    """A delta as a person reads it, exactly.

    >>> delta_text(1_000_000_000), delta_text(2_500_000_000), delta_text(0), delta_text(10**18)
    ('1e-9', '2.5e-9', '0', '1')
    """
    if atto % ATTO == 0:
        return str(atto // ATTO)
    digits = str(abs(atto))
    power, rest = len(digits) - 19, digits[1:].rstrip("0")
    whole = f"{digits[0]}.{rest}" if rest else digits[0]
    return f"{'-' * (atto < 0)}{whole}e{power}"


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

    >>> epsilon_text(100_000_000), epsilon_text(1), epsilon_text(UNBOUNDED)
    ('0.1', '0.000000001', 'no bound')
    """
    if nano >= UNBOUNDED:
        return "no bound"
    sign = "-" if nano < 0 else ""
    whole, rest = divmod(abs(nano), NANO)
    return f"{sign}{whole}.{rest:09d}".rstrip("0").rstrip(".") if rest else f"{sign}{whole}"


def number_text(amount: int, measure: str) -> str:
    """An amount of a measure as a person reads it, without the measure.

    >>> number_text(100_000_000, "rho"), number_text(1_000_000_000, "delta")
    ('0.1', '1e-9')
    """
    return delta_text(amount) if measure == "delta" else epsilon_text(amount)


def total_text(losses: Iterable[Losses]) -> str:
    """The sum of pure losses, of zero-concentrated ones and of deltas as a person reads it.

    >>> total_text([(100_000_000, 5_000_000, 0), (None, 17_500_000, 10**9)])
    '0.1 and rho 0.0175 and delta 1e-9'
    """
    found = list(losses)
    pure = sum(epsilon for epsilon, _, _ in found if epsilon is not None)
    rho = sum(rho for epsilon, rho, _ in found if epsilon is None)
    delta = sum(delta for _, _, delta in found)
    return " and ".join(
        [epsilon_text(pure)] * bool(pure or not rho)
        + [f"rho {epsilon_text(rho)}"] * bool(rho)
        + [f"delta {delta_text(delta)}"] * bool(delta)
    )
