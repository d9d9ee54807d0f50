"""The caps as they are configured, and as the ledger keeps them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, model_validator

from streamdp.config.base.section import Section
from streamdp.config.base.values import PositiveDuration, PositiveRational
from streamdp.privacy.accountants import rho_for
from streamdp.privacy.amounts import NANO
from streamdp.privacy.filters import Caps, Limit


class WindowCap(Section):
    """What a unit may lose that returns within a window; every window that slides over it."""

    batches: Annotated[int, Field(ge=1, le=10**6, strict=True)] | Literal["all"] | None = Field(
        default=None,
        description="Length of the window: any so many consecutive batches, or `all`.",
        examples=[7, "all"],
    )
    time: PositiveDuration | None = Field(
        default=None,
        description="Length of the window, as a duration: all batches that any stretch of this"
        " length touches.",
        examples=["30d"],
    )
    epsilon: PositiveRational | None = Field(
        default=None,
        description="Most epsilon per unit within the window. Pure unless `delta` is given.",
        examples=[1],
    )
    delta: PositiveRational | None = Field(
        default=None,
        description="Delta that goes with epsilon, below 1. The cap is then kept by"
        " zero-concentrated accounting. Default: none, pure epsilon.",
        examples=[1e-09],
    )
    rho: PositiveRational | None = Field(
        default=None,
        description="Most zero-concentrated loss per unit within the window, in place of epsilon.",
        examples=[0.1],
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

    batch: PositiveRational = Field(
        description="Most epsilon that all releases of one batch may cost together.", examples=[0.5]
    )
    lifetime: PositiveRational = Field(
        description="Most epsilon that all releases of one source may cost together, for ever."
        " Raising it later takes `streamdp cap`.",
        examples=[60],
    )
    windows: tuple[WindowCap, ...] = Field(
        default=(),
        description="Further caps over sliding windows, for units that return in later batches."
        " Default: none.",
        examples=[[{"batches": 7, "epsilon": 1}, {"time": "30d", "epsilon": 4}]],
    )

    def caps(self) -> Caps:
        """The caps in integers."""
        windows = tuple(window.limit() for window in self.windows)
        return Caps(_nano(self.batch), _nano(self.lifetime), windows)


def _nano(cap: Fraction) -> int:
    return math.floor(cap * NANO)
