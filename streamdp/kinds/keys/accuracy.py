"""The release kind `keys`: of how many units a key is found, and how exact counts are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from streamdp.kinds.least_price import least_price
from streamdp.kinds.statistics.measures.protocol import LEVEL
from streamdp.mechanisms.key_selection.selection import selection_at

if TYPE_CHECKING:
    from streamdp.kinds.keys.kind import Keys
    from streamdp.privacy.price import Price


class KeysFound:
    """The error that 95 % of counts stay within, and the units of a key that is soon found."""

    def expected(self, kind: Keys) -> Mapping[str, float | None]:
        """Error of counts of known keys as drawn, and the units at which half of keys are found."""
        selection = kind.selection
        return {
            "error_95": float(selection.noise.reach(LEVEL)),
            "found_half_of_the_time_at": float(selection.half),
        }

    def price_for(self, kind: Keys, error: float) -> Price | None:
        """Price for one record at which counts are so near."""

        def reach(price: Price) -> float:
            try:
                whole = price.of_unit(kind.keys_per_unit)
                exchanged = kind.neighbours == "substitute"
                made = selection_at(
                    whole, kind.delta, kind.keys_per_unit, kind.at_least, substitute=exchanged
                )
            except ValueError:
                return float("inf")
            return float(made.noise.reach(LEVEL))

        return least_price(reach, error, kind.price.measure)
