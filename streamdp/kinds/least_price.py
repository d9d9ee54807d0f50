"""The least price at which an error is small enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from streamdp.privacy.filters import Measure
from streamdp.privacy.price import Price

BETWEEN: Mapping[Measure, tuple[Fraction, Fraction]] = {
    "epsilon": (Fraction(1, 10**6), Fraction(100)),
    "rho": (Fraction(1, 10**12), Fraction(1000)),
}
"""Prices that are tried."""

HALVINGS = 40
DENOMINATOR = 10**15
"""Denominator of the prices that are tried: those of rho may be small."""


def least_price(
    error_at: Callable[[Price], float],
    error: float,
    measure: Measure,
    between: tuple[Fraction, Fraction] | None = None,
    halvings: int = HALVINGS,
) -> Price | None:
    """About the least price with so small an error; None if the highest that is tried has not.

    Args:
        error_at: Error at a price; falls with it.
        error: The wanted one.
        measure: Of the price.
        between: Lowest and highest amount.
        halvings: Of their ratio, in logarithms.

    >>> found = least_price(lambda price: 1 / float(price.amount), 4.0, "rho")
    >>> round(float(found.amount), 6)
    0.25
    >>> least_price(lambda price: 1 / float(price.amount), 1e-9, "epsilon") is None
    True
    """
    low, high = between or BETWEEN[measure]
    if error_at(Price(high, measure)) > error:
        return None
    for _ in range(halvings):
        middle = Fraction(float(low * high) ** 0.5).limit_denominator(DENOMINATOR)
        if error_at(Price(middle, measure)) <= error:
            high = middle
        else:
            low = middle
    return Price(high, measure)
