"""The way in which keys are found at a price, chosen before data is touched."""

from __future__ import annotations

from fractions import Fraction

from streamdp.mechanisms.key_selection.gaussian_threshold import GaussianThreshold
from streamdp.mechanisms.key_selection.truncated_geometric import TruncatedGeometric
from streamdp.privacy.price import Price

Selection = TruncatedGeometric | GaussianThreshold


def selection_at(
    price: Price, delta: Fraction, keys: int, at_least: int, *, substitute: bool = False
) -> Selection:
    """Coins for keys, and noise for the counts of known ones, at a price for a whole unit.

    At a price in epsilon the truncated geometric law is the best there is. At one in rho Gaussian
    noise finds keys of a third of the units that it would.

    Args:
        price: Of all keys of a unit.
        delta: Likewise.
        keys: The most keys of one unit that count.
        at_least: A key of fewer units is never found.
        substitute: Whether a neighbour may have other keys in the place of a unit's: twice as many
            numbers differ, and each costs half.

    Raises:
        ValueError: Price or delta are too small for so many keys.
    """
    numbers = 2 * keys if substitute else keys
    if price.measure == "rho":
        return GaussianThreshold(price.amount, delta, numbers, at_least)
    return TruncatedGeometric(price.amount, delta, numbers, at_least)
