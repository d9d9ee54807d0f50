"""The price of a release: an amount of pure, or of zero-concentrated, loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from streamdp.privacy.amounts import epsilon_text, nano_up
from streamdp.privacy.filters import Item, Measure

LEAST: Mapping[Measure, Fraction] = {"epsilon": Fraction(1, 10**6), "rho": Fraction(1, 10**13)}
"""Of one record in one part of a release: less buys nothing but noise."""


@dataclass(frozen=True, slots=True)
class Price:
    """An exact price.

    Args:
        amount: Positive.
        measure: `epsilon` is pure loss, `rho` zero-concentrated.
    """

    amount: Fraction
    measure: Measure = "epsilon"

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
    def nano(self) -> int:
        """As it is booked in its own measure."""
        return nano_up(self.amount)

    def item(self, rho_nano: int) -> Item:
        """The charge in both measures.

        Args:
            rho_nano: Zero-concentrated loss of a price in epsilon, which depends on what is drawn.
        """
        if self.measure == "rho":
            return Item(0, None, self.nano)
        return Item(0, self.nano, rho_nano)


def price_text(price: Price, times: int = 1) -> str:
    """So many prices as a person reads them.

    >>> price_text(Price(Fraction(1, 10)), 3), price_text(Price(Fraction(1, 50), "rho"))
    ('0.3', 'rho 0.02')
    """
    return amount_text(price.nano * times, price.measure)


def amount_text(nano: int, measure: Measure) -> str:
    """An amount with its measure; a bare number is epsilon."""
    return epsilon_text(nano) if measure == "epsilon" else f"rho {epsilon_text(nano)}"
