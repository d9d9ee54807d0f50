"""The caps as they are configured, and as the ledger keeps them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from streamdp.config.base.section import Section
from streamdp.config.base.values import PositiveDuration, PositiveRational
from streamdp.privacy.accountants import rho_for
from streamdp.privacy.amounts import NANO
from streamdp.privacy.filters import LARGEST_CAP, Caps, Limit, Measure

_TOO_SMALL = "this cap is too small to admit anything"
_TOO_LARGE = f"a cap is at most {LARGEST_CAP}: above that it protects nobody"


def _bounded(amount: Fraction) -> Fraction:
    if amount > LARGEST_CAP:
        raise ValueError(_TOO_LARGE)
    return amount


_Amount = Annotated[PositiveRational, AfterValidator(_bounded)]


class ConcentratedCap(Section):
    """A cap by zero-concentrated accounting."""

    rho: _Amount | None = Field(
        default=None, description="Most zero-concentrated loss.", examples=[0.02]
    )
    epsilon: _Amount | None = Field(
        default=None,
        description="Most epsilon at `delta`, in place of `rho`. The cap in rho follows from both.",
        examples=[1],
    )
    delta: PositiveRational | None = Field(
        default=None, description="Delta that goes with epsilon, below 1.", examples=[1e-09]
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> ConcentratedCap:
        if (self.rho is None) == (self.epsilon is None):
            raise ValueError("a cap has either rho or epsilon and delta")
        if (self.epsilon is None) != (self.delta is None) or (self.delta or 0) >= 1:
            raise ValueError("epsilon and delta go together, delta below 1: 1e-9")
        if self.nano() == 0:
            raise ValueError(_TOO_SMALL)
        return self

    def nano(self) -> int:
        """In rho, rounded down: a cap is never more than was written."""
        if self.epsilon is not None and self.delta is not None:
            return rho_for(self.epsilon, self.delta)
        return math.floor((self.rho or 0) * NANO)


def _form(value: Any) -> str:
    return "ConcentratedCap" if isinstance(value, dict | Section) else "cap[pure]"


Cap = Annotated[
    Annotated[_Amount, Tag("cap[pure]")] | Annotated[ConcentratedCap, Tag("ConcentratedCap")],
    Discriminator(_form),
]
"""A number is pure epsilon; a section is zero-concentrated."""


class WindowCap(Section):
    """Cap on the loss of a unit that returns within a window, wherever the window begins."""

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
    epsilon: _Amount | None = Field(
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
    rho: _Amount | None = Field(
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
            raise ValueError(_TOO_SMALL)
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
    """Caps on the loss of one unit; a later rise needs `streamdp cap`."""

    batch: Cap = Field(
        description="Most that all releases of one batch may cost together: pure epsilon, or"
        " `{rho: ...}`, or `{epsilon: ..., delta: ...}`.",
        examples=[0.5, {"rho": 0.02}],
    )
    lifetime: Cap = Field(
        description="Most that all releases of one source may cost together, for ever; in the same"
        " terms as `batch`. Raising it later takes `streamdp cap`.",
        examples=[60, {"epsilon": 3, "delta": 1e-09}],
    )
    windows: tuple[WindowCap, ...] = Field(
        default=(),
        description="Further caps over sliding windows, for units that return in later batches."
        " Default: none.",
        examples=[[{"batches": 7, "epsilon": 1}, {"time": "30d", "epsilon": 4}]],
    )

    @model_validator(mode="after")
    def _in_one_measure(self) -> CapsSection:
        if _form(self.batch) != _form(self.lifetime):
            raise ValueError(
                "batch and lifetime are in the same terms: both numbers (pure epsilon), or both"
                " {rho: ...} or {epsilon: ..., delta: ...}"
            )
        return self

    @property
    def measure(self) -> Measure:
        """Of the caps of a batch and of the lifetime."""
        return "epsilon" if isinstance(self.batch, Fraction) else "rho"

    def caps(self) -> Caps:
        """The caps in integers."""
        windows = tuple(window.limit() for window in self.windows)
        return Caps(_nano(self.batch), _nano(self.lifetime), windows, self.measure)


def _nano(cap: Fraction | ConcentratedCap) -> int:
    return math.floor(cap * NANO) if isinstance(cap, Fraction) else cap.nano()
