"""Price of a release for a unit and for disjoint groups, and the least with a small enough error.

A kind says what its draws cost one record. A unit with at most k records pays k times that, and
draws on disjoint groups of records cost together what one of them costs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from streamdp.privacy.events import charge_of, group, parallel, sequence
from streamdp.privacy.filters import Measure
from streamdp.privacy.price import Price
from streamdp.types import Batch, Charge, Json, Plan, Query, UnitBound, with_bound

Group = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnitCharging:
    """Price of a release for a unit, and the bound on its records.

    Args:
        bound: How many records of one unit count; None where one record is a unit.

    Privacy: the event of a plan is a bound for two batches that differ in one record. A unit has at
    most k records in what the backend counts, so two batches with and without it are k steps of one
    record apart, and it loses k times as much pure loss, k² times as much zero-concentrated loss
    (event `group`). What is in `unit_event` is a bound
    for a whole unit already and is added to that.
    """

    bound: UnitBound | None = None

    @property
    def rows(self) -> int:
        """The most records of one unit that count."""
        return 1 if self.bound is None else self.bound.rows

    def bounded(self, query: Query, batch: Batch) -> Query:
        """A question of bounded units; which of a unit's records count is chosen in each batch."""
        return with_bound(query, self.bound and self.bound.of(batch))

    def charge(self, plan: Plan) -> Charge:
        """The price of a plan to one unit."""
        event = plan.event
        if plan.unit_event is not None:
            draws = {name: event[name] for name in ("type", "events")}
            about = {name: event[name] for name in event if name not in draws}
            draws = draws if self.rows == 1 else group(draws, self.rows)
            event = sequence([draws, plan.unit_event], **about)
        elif self.rows > 1:
            event = group(event, self.rows)
        return charge_of(event)


def disjoint(events: Sequence[Json], by: Sequence[str]) -> Json:
    """The event of draws on disjoint groups of records: one record is in one of them.

    Args:
        events: Of each group.
        by: Columns that say a record's group.

    Each distinct event is written down once, without what tells the priors of groups apart (`prior`
    and `drawn`), and so the price is that of the worst; a digest of all priors stands beside them.
    """
    distinct: list[Json] = []
    for event in events:
        alike = {name: said for name, said in event.items() if name not in ("prior", "drawn")}
        if alike not in distinct:
            distinct.append(alike)
    priors = json.dumps([event.get("prior") for event in events])
    about = {"prior": hashlib.sha256(priors.encode()).hexdigest()}
    return parallel(distinct, by=list(by), groups=len(events), **about)


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
