"""The price of a release: an amount of pure, or of zero-concentrated, loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from streamdp.privacy.amounts import atto_up, epsilon_text, nano_up, number_text
from streamdp.privacy.filters import Item, Measure

LEAST: Mapping[Measure, Fraction] = {"epsilon": Fraction(1, 10**6), "rho": Fraction(1, 10**13)}
"""Least price of one record in one part of a release: less buys nothing but noise."""


_ROOT = 10**12
"""Denominator of a root."""


@dataclass(frozen=True, slots=True)
class Price:
    """An exact price.

    Args:
        amount: Positive.
        measure: `epsilon` is pure loss, `rho` zero-concentrated.
        delta: The chance to lose more; only whole releases for a unit have one.
    """

    amount: Fraction
    measure: Measure = "epsilon"
    delta: Fraction = Fraction(0)

    def of_record(self, rows: int) -> Price:
        """The price of one record of a unit that has so many: the event `group` costs the whole.

        >>> Price(Fraction(1)).of_record(2).amount, Price(Fraction(1), "rho").of_record(2).amount
        (Fraction(1, 2), Fraction(1, 4))
        """
        return Price(self.amount / self._growth(rows), self.measure)

    def of_unit(self, rows: int) -> Price:
        """The price of a unit that has so many records, from that of one of them."""
        return Price(self.amount * self._growth(rows), self.measure)

    def _growth(self, rows: int) -> int:
        """How much more a unit loses than one of its records."""
        return rows**2 if self.measure == "rho" else rows

    def share(self, part: Fraction) -> Price:
        """Part of it; the parts of draws on the same records add up, in both measures."""
        return Price(self.amount * part, self.measure)

    @property
    def loss_range(self) -> Fraction:
        """Widest range of the loss of one draw at this price: a range r costs r, or r²/8 of rho.

        >>> Price(Fraction(1, 10)).loss_range, Price(Fraction(1, 50), "rho").loss_range
        (Fraction(1, 10), Fraction(2, 5))
        """
        if self.measure == "epsilon":
            return self.amount
        return Fraction(math.isqrt(math.floor(8 * self.amount * _ROOT**2)), _ROOT)

    @classmethod
    def of_loss_range(cls, loss_range: Fraction, measure: Measure) -> Price:
        """The price of one draw whose loss has such a range."""
        return cls(loss_range if measure == "epsilon" else loss_range**2 / 8, measure)

    @property
    def nano(self) -> int:
        """The amount that is booked, in its own measure."""
        return nano_up(self.amount)

    def item(self, rho_nano: int) -> Item:
        """The charge in both measures.

        Args:
            rho_nano: Zero-concentrated loss of a price in epsilon, which depends on what is drawn.
        """
        delta = atto_up(self.delta)
        if self.measure == "rho":
            return Item(0, None, self.nano, delta)
        return Item(0, self.nano, rho_nano, delta)


def price_text(price: Price, times: int = 1) -> str:
    """Write prices as a person reads them.

    >>> price_text(Price(Fraction(1, 10)), 3), price_text(Price(Fraction(1, 50), "rho"))
    ('0.3', 'rho 0.02')
    """
    return amount_text(price.nano * times, price.measure)


def amount_text(nano: int, measure: Measure) -> str:
    """An amount with its measure; a bare number is epsilon."""
    return epsilon_text(nano) if measure == "epsilon" else f"{measure} {number_text(nano, measure)}"
