"""The caps as they are configured, and as the ledger keeps them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from streamdp.privacy.accountants import rho_for
from streamdp.privacy.amounts import ATTO, NANO
from streamdp.privacy.filters import LARGEST_CAP, Caps, Limit, Measure
from streamdp.sections.section import Section
from streamdp.sections.values import PositiveDuration, PositiveRational

_TOO_SMALL = "this cap is too small to admit anything"
_TOO_LARGE = f"a cap is at most {LARGEST_CAP}: above that it protects nobody"


def _bounded(amount: Fraction) -> Fraction:
    if amount > LARGEST_CAP:
        raise ValueError(_TOO_LARGE)
    return amount


def _below_one(delta: Fraction) -> Fraction:
    if not Fraction(1, ATTO) <= delta < 1:
        raise ValueError("a delta is below 1 and at least 1e-18: 1e-9")
    return delta


Width = tuple[int | None, int | None]
"""Number of batches or seconds of a stretch; with neither, it is the lifetime."""

_Amount = Annotated[PositiveRational, AfterValidator(_bounded)]


_NONE = Fraction(0)


def _left(delta: Fraction, charged: Fraction) -> Fraction:
    """The part of a cap's delta that epsilon follows from rho at."""
    if charged >= delta:
        raise ValueError(
            f"a cap in epsilon and delta has a delta of {float(delta):g}, and caps.delta lets"
            f" releases spend {float(charged):g} of it: they must leave some, half of it say"
        )
    return delta - charged


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

    def nano(self, charged: Fraction = _NONE) -> int:
        """Return the cap in nano units, rounded down: it is never more than was written.

        Args:
            charged: The delta that releases may spend of the delta of this cap.
        """
        if self.epsilon is not None and self.delta is not None:
            return rho_for(self.epsilon, _left(self.delta, charged))
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

    @property
    def width(self) -> Width:
        """Number of batches and seconds."""
        return (None if self.batches == "all" else self.batches), self.time

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

    def limit(self, charged: Fraction = _NONE) -> Limit:
        """The cap in integers, rounded down: a cap is never more than was written.

        Args:
            charged: The delta that releases may spend of the delta of this cap.
        """
        if self.epsilon is not None and self.delta is not None:
            return Limit(rho_for(self.epsilon, _left(self.delta, charged)), "rho", *self.width)
        if self.rho is not None:
            return Limit(math.floor(self.rho * NANO), "rho", *self.width)
        return Limit(math.floor((self.epsilon or 0) * NANO), "epsilon", *self.width)


_Delta = Annotated[PositiveRational, AfterValidator(_below_one)]


class DeltaWindow(Section):
    """Cap on the delta of a unit that returns within a window, wherever the window begins."""

    batches: Annotated[int, Field(ge=1, le=10**6, strict=True)] | None = Field(
        default=None,
        description="Length of the window: any so many consecutive batches.",
        examples=[7],
    )
    time: PositiveDuration | None = Field(
        default=None,
        description="Length of the window, as a duration.",
        examples=["30d"],
    )
    delta: _Delta = Field(description="Most delta per unit within the window.", examples=[1e-08])

    @model_validator(mode="after")
    def _one_length(self) -> DeltaWindow:
        if (self.batches is None) == (self.time is None):
            raise ValueError("a window has either batches or time")
        return self


class DeltaCaps(Section):
    """Caps on delta, the chance that releases lose more than their epsilon or rho.

    Only releases that find keys in the data have a delta.
    """

    batch: _Delta | None = Field(
        default=None,
        description="Most delta of all releases of one batch together. Default: as `lifetime`.",
        examples=[1e-09],
    )
    lifetime: _Delta = Field(
        description="Most delta of all releases of one source together, for ever. Raising it later"
        " takes `streamdp cap`.",
        examples=[1e-06],
    )
    windows: tuple[DeltaWindow, ...] = Field(
        default=(),
        description="Further caps over sliding windows. Default: none.",
        examples=[[{"batches": 7, "delta": 1e-08}]],
    )

    @model_validator(mode="after")
    def _batch_within_lifetime(self) -> DeltaCaps:
        if self.batch is not None and self.batch > self.lifetime:
            raise ValueError("the delta of a batch is above that of the lifetime: lower it")
        return self

    def within(self, width: Width) -> Fraction:
        """The most delta that a stretch of some width can have, by these caps."""
        batches, seconds = width
        found = [self.lifetime]
        if batches is not None:
            found += [self.batch * batches] if self.batch is not None else []
            found += [each.delta for each in self.windows if (each.batches or 0) >= batches]
        if seconds is not None:
            found += [each.delta for each in self.windows if (each.time or 0) >= seconds]
        return min(found)

    def limits(self) -> tuple[Limit, ...]:
        """The caps in integers, rounded down."""
        batch = [] if self.batch is None else [Limit(_atto(self.batch), "delta", batches=1)]
        windows = (
            Limit(_atto(each.delta), "delta", each.batches, each.time) for each in self.windows
        )
        return (Limit(_atto(self.lifetime), "delta"), *batch, *windows)


def _atto(delta: Fraction) -> int:
    return math.floor(delta * ATTO)


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

    delta: DeltaCaps | None = Field(
        default=None,
        description="Caps on delta, which releases that find keys have. A cap in epsilon"
        " and delta covers what they spend of it too. Default: none, no release may have a delta.",
        examples=[{"lifetime": 1e-06}, {"batch": 1e-09, "lifetime": 1e-06}],
    )

    @model_validator(mode="after")
    def _in_one_measure(self) -> CapsSection:
        if _form(self.batch) != _form(self.lifetime):
            raise ValueError(
                "batch and lifetime are in the same terms: both numbers (pure epsilon), or both"
                " {rho: ...} or {epsilon: ..., delta: ...}"
            )
        if self.delta is not None and 0 in (limit.nano for limit in self.caps().limits):
            raise ValueError("what caps.delta leaves of a cap's delta is too little for any rho")
        return self

    @property
    def measure(self) -> Measure:
        """Measure of the caps of a batch and of the lifetime."""
        return "epsilon" if isinstance(self.batch, Fraction) else "rho"

    def caps(self) -> Caps:
        """The caps in integers."""
        windows = (each.limit(self._charged(each.width)) for each in self.windows)
        deltas = () if self.delta is None else self.delta.limits()
        return Caps(
            _nano(self.batch, self._charged((1, None))),
            _nano(self.lifetime, self._charged((None, None))),
            (*windows, *deltas),
            self.measure,
        )

    def _charged(self, width: Width) -> Fraction:
        """The delta that releases may spend in a stretch of some width."""
        return _NONE if self.delta is None else self.delta.within(width)


def _nano(cap: Fraction | ConcentratedCap, charged: Fraction) -> int:
    return math.floor(cap * NANO) if isinstance(cap, Fraction) else cap.nano(charged)
