"""Caps as filters: whether one more charge fits, for charges chosen adaptively.

A sum of pure losses with a fixed cap is a valid filter whatever the charges depend on
(Rogers et al. 2016). All amounts are integers of 1e-9.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caps:
    """What one record may lose.

    Args:
        batch_nano: In all releases of one batch. A record belongs to one batch, so this bounds
            its loss for ever, if its unit never returns.
        lifetime_nano: In all releases of the source: the bound for units that return every batch.
    """

    batch_nano: int
    lifetime_nano: int


@dataclass(frozen=True, slots=True)
class Spent:
    """What has been charged so far, burnt charges included."""

    batch_nano: int
    lifetime_nano: int


def refusing_cap(caps: Caps, spent: Spent, charge_nano: int) -> str | None:
    """Name of the cap that refuses the charge, or None if it fits all.

    >>> refusing_cap(Caps(300, 1000), Spent(200, 900), 100)
    >>> refusing_cap(Caps(300, 1000), Spent(200, 901), 100)
    'lifetime'
    """
    if spent.lifetime_nano + charge_nano > caps.lifetime_nano:
        return "lifetime"
    if spent.batch_nano + charge_nano > caps.batch_nano:
        return "batch"
    return None
