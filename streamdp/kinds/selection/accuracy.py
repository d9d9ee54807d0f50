"""The release kind `selection`: how far the choice may be from the best candidate."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from streamdp.kinds.selection.sample_size import Generalization
from streamdp.kinds.selection.scores import step_of
from streamdp.privacy.price import Price

if TYPE_CHECKING:
    from streamdp.kinds.selection.kind import Selection

BETA = 0.05


class Shortfall:
    """How far the choice may be from the best, and how many records a small error takes."""

    def expected(self, kind: Selection) -> Mapping[str, float | None]:
        """In records or the sum's unit, as a share of the expected records, on new ones (PAC)."""
        within, unit, step = kind.shortfall(), kind.unit(), float(step_of(kind.score))
        rows = kind.expected_rows
        new = Generalization(kind.exponent, unit, kind.count, BETA, kind.least_prior)
        return {
            "shortfall_95": within,
            "error_rate_95": None if rows is None else within / (unit * step * rows),
            "error_rate_on_new_records_95": None if rows is None else new.error(rows),
            "records_for_error_0.01": new.records(0.01),
        }

    def price_for(self, kind: Selection, error: float) -> Price:
        """Price at which the score is within `error` of the best with probability 95 %."""
        return Price(kind.epsilon * Fraction(kind.shortfall() / error).limit_denominator(10**6))
