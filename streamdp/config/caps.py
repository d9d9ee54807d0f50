"""The caps as they are configured, and as the ledger keeps them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, model_validator

from streamdp.config.section import Section
from streamdp.config.values import PositiveDuration, PositiveRational
from streamdp.privacy.accountants import rho_for
from streamdp.privacy.amounts import NANO
from streamdp.privacy.filters import Caps, Limit


class WindowCap(Section):
    """What a unit may lose that returns within a window; every window that slides over it."""

    batches: Annotated[int, Field(ge=1, le=10**6, strict=True)] | Literal["all"] | None = Field(
        default=None, description="Any so many batches in a row, or all there will ever be."
    )
    time: PositiveDuration | None = Field(
        default=None, description="All batches that any stretch of so much time touches."
    )
    epsilon: PositiveRational | None = Field(default=None, description="Pure, without delta.")
    delta: PositiveRational | None = Field(
        default=None, description="With epsilon: the cap is kept by zero-concentrated accounting."
    )
    rho: PositiveRational | None = Field(
        default=None, description="Zero-concentrated loss, instead of epsilon."
    )

    @model_validator(mode="after")
    def _one_of_each(self) -> WindowCap:
        if (self.batches is None) == (self.time is None):
            raise ValueError("a window has either batches or time")
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("a window has either epsilon (with or without delta) or rho")
        if self.delta is not None and (self.epsilon is None or self.delta >= 1):
            raise ValueError("delta goes with epsilon, and is below 1: 1e-9")
        if self.limit().nano == 0:
            raise ValueError("this cap is too small to admit anything")
        return self

    def limit(self) -> Limit:
        """The cap in integers, rounded down: a cap is never more than was written."""
        batches = None if self.batches == "all" else self.batches
        if self.epsilon is not None and self.delta is not None:
            return Limit(rho_for(self.epsilon, self.delta), "rho", batches, self.time)
        if self.rho is not None:
            return Limit(math.floor(self.rho * NANO), "rho", batches, self.time)
        return Limit(math.floor((self.epsilon or 0) * NANO), "epsilon", batches, self.time)


class CapsSection(Section):
    """What one record may lose, in epsilon; a later rise needs `streamdp cap`."""

    batch: PositiveRational = Field(description="In all releases of one batch.")
    lifetime: PositiveRational = Field(description="In all releases of a source, for ever.")
    windows: tuple[WindowCap, ...] = Field(
        default=(), description="Further caps, for units that return in later batches."
    )

    def caps(self) -> Caps:
        """The caps in integers."""
        windows = tuple(window.limit() for window in self.windows)
        return Caps(_nano(self.batch), _nano(self.lifetime), windows)


def _nano(cap: Fraction) -> int:
    return math.floor(cap * NANO)
