"""The release kind `experts`: the error of a loss and the regret to expect."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from streamdp.privacy.price import Price

if TYPE_CHECKING:
    from streamdp.kinds.experts.kind import Experts

YEAR = 365


class Regret:
    """The error of a released loss, and the regret to expect."""

    def expected(self, kind: Experts) -> Mapping[str, float | None]:
        """Half the widest interval of a loss, and about the average regret after 365 batches."""
        deviation = kind.deviation()
        regret = 2.0 * math.sqrt((0.25 + deviation**2) * math.log(kind.losses.count) / YEAR)
        return {"loss_error_95": float(kind.half_widths().max()), "regret_after_365": regret}

    def price_for(self, kind: Experts, error: float) -> Price:
        """Price at which the widest interval of a loss has this half width, nearly."""
        ratio = float(kind.half_widths().max()) / error
        return Price(kind.epsilon * Fraction(ratio).limit_denominator(10**6))
