"""What rank error to expect of quantiles, from public facts alone.

Simulated once for the prior before any release, so that what was learned since only helps (and
noise that was bought hardly hurts).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from streamdp.mechanisms import accuracy

if TYPE_CHECKING:
    from streamdp.kinds.quantiles.kind import Quantiles


class RankError:
    """The share of ranks that 95 % of releases stay within."""

    def expected(self, kind: Quantiles) -> Mapping[str, float | None]:
        """None without expected rows."""
        return {"rank_error_95": kind.rank_error()}

    def epsilon_for(self, kind: Quantiles, error: float) -> Fraction | None:
        """Price for one record with which 95 % of releases stay within; None if none was found."""
        if kind.expected_rows is None:
            return None
        prior = kind.first_prior()
        needed = accuracy.epsilon_needed(kind.tree(), prior, kind.expected_rows, error)
        return None if needed is None else needed / (1 - kind.gradient_share())


@functools.lru_cache(maxsize=64)
def expected_rank_error(kind: Quantiles) -> float:
    """Simulated once for a configuration: it takes about as long as a hundred releases."""
    tree, rows = kind.tree(), kind.expected_rows or 1
    return round(accuracy.stays_under(tree, kind.first_prior(), rows), 4)
