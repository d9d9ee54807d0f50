"""The section `privacy`: who is protected, and the caps on what one of them may lose."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from streamdp.privacy.accountants import epsilon_of_rho, rho_for
from streamdp.privacy.amounts import ATTO, NANO, NO_DELTA, NO_PURE_LOSS, number_text
from streamdp.privacy.filters import (
    LARGEST_CAP,
    LARGEST_PRICE,
    NO_DELTA_LIMIT,
    Caps,
    Limit,
    Measure,
)
from streamdp.privacy.price import LEAST
from streamdp.sections.document import Document, Path, refuse
from streamdp.sections.section import Section
from streamdp.sections.values import PositiveDuration, PositiveRational
from streamdp.types import MOST_ROWS_PER_UNIT, UnitBound

if TYPE_CHECKING:
    from streamdp.kinds.section import ReleaseSection

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


Cost = Callable[[Measure], int]
"""An amount in each measure, in its smallest unit."""

LARGEST_EPSILON = 20
DELTA = Fraction(1, 10**9)
"""Delta at which a price in rho is compared with the largest epsilon."""
CAPS = ("batch", "lifetime")


class Unit(Section):
    """Unit of privacy: one record, or all records of a batch that share a value of a column."""

    name: str = Field(
        min_length=1, description="Word for the unit in statements.", examples=["patient"]
    )
    column: str | None = Field(
        default=None,
        min_length=1,
        description="Column that identifies the unit of a record. Records with null in it are left"
        " out. Default: each record is a unit.",
        examples=["patient_id"],
    )
    rows: int = Field(
        default=1,
        ge=1,
        le=MOST_ROWS_PER_UNIT,
        strict=True,
        description="Most records of one unit that count in a batch; the others are left out."
        " Epsilon protects all of them together, so noise grows with it. Default 1.",
    )

    @model_validator(mode="before")
    @classmethod
    def _a_word_is_a_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _rows_of_somebody(self) -> Unit:
        if self.rows > 1 and self.column is None:
            raise ValueError("several rows of a unit need the column that says whose they are")
        return self

    def __str__(self) -> str:
        if self.column is None:
            return self.name
        records = "record" if self.rows == 1 else "records"
        return f"{self.name}: at most {self.rows} {records} of one {self.column}"

    def bound(self) -> UnitBound | None:
        """How many records of a unit count; None where each record is a unit."""
        return None if self.column is None else UnitBound(self.column, self.rows)

    def counted(self) -> str:
        """What a number of records is a number of.

        >>> Unit(name="customer", column="who", rows=2).counted()
        'records, at most 2 a customer'
        """
        return "records" if self.column is None else f"records, at most {self.rows} a {self.name}"

    def left_out(self) -> str | None:
        """What is left out of every release, for whoever expects numbers of all records."""
        if self.column is None:
            return None
        return (
            f"counts are of {self.counted()}: records beyond that are left out of every count, sum,"
            " mean and quantile, and intervals hold numbers of what is left"
        )

    def protects(self) -> str:
        """The unit in words that tell one record from all records of somebody."""
        return f"one record ({self.name})" if self.column is None else str(self)


class Privacy(Section):
    """Unit, relation and caps of the privacy guarantee."""

    unit: Unit = Field(
        description="Who is protected: a word for one record, or a section for a unit that has"
        " several records.",
        examples=["flight", {"name": "patient", "column": "patient_id", "rows": 5}],
    )
    neighbours: Literal["add-remove", "substitute"] = Field(
        default="add-remove",
        description="Neighbouring streams differ in one batch: by one unit more or less"
        " (`add-remove`), or in the records of one unit (`substitute`). A record that changes its"
        " batch is two steps, and with `add-remove` four if its unit has others. Default"
        " `add-remove`.",
    )
    caps: CapsSection = Field(
        description="Most epsilon that one unit may lose. A release beyond a cap is refused.",
        examples=[{"batch": 0.5, "lifetime": 60}],
    )
    allow_large_epsilon: bool = Field(
        default=False,
        strict=True,
        description="Admit an epsilon above 20, which protects next to nothing. Default false.",
    )

    def check(self, release: ReleaseSection, document: Document, path: Path) -> None:
        """Refuse a release whose price protects nobody, or that the caps or the unit exclude.

        Raises:
            ConfigurationError: With its place in the file.
        """
        self._check_price(release, document, path)
        self._check_unit(release, document, path)

    def _check_price(self, release: ReleaseSection, document: Document, path: Path) -> None:
        """Require that a price protects something and fits under the caps."""
        price, caps = release.price, self.caps.caps()
        epsilon: Fraction | int = price.amount
        if price.measure == "rho":
            epsilon = Fraction(epsilon_of_rho(price.nano, DELTA), NANO)
        if epsilon > LARGEST_EPSILON and not self.allow_large_epsilon:
            at = "" if price.measure == "epsilon" else f" at delta {float(DELTA):g}"
            refuse(
                f"an epsilon above {LARGEST_EPSILON}{at} protects next to nothing",
                document,
                (*path, price.measure),
                "lower it, or set privacy.allow_large_epsilon: true; in a notebook,"
                " Ledger(..., allow_large_epsilon=True)",
            )
        if price.amount > LARGEST_PRICE:
            refuse(
                f"a release costs {LARGEST_PRICE} at most",
                document,
                (*path, price.measure),
                "it is as good as exact long before: lower it",
            )
        if price.measure not in release.measures_of_price:
            refuse(
                f"releases of kind {release.kind} have no Gaussian noise, and are not paid in rho",
                document,
                (*path, "rho"),
                "give epsilon in place of rho; caps in rho admit it",
            )
        if price.delta and NO_DELTA_LIMIT in caps.deltas:
            refuse(
                "this release has a delta, and the caps have none",
                document,
                (*path, "delta"),
                NO_DELTA,
            )
        pure = [limit.name for limit in caps.limits if limit.measure == "epsilon"]
        if price.measure == "rho" and pure:
            refuse(
                f"this release is paid in rho, and the {pure[0]} cap is in pure epsilon",
                document,
                (*path, "rho"),
                NO_PURE_LOSS,
            )

    def _check_unit(self, release: ReleaseSection, document: Document, path: Path) -> None:
        """Refuse an epsilon that is too little for one record, and groups the relation excludes."""
        rows = self.unit.rows
        price = release.price
        if price.of_record(rows).amount < LEAST[price.measure]:
            refuse(
                f"each of a unit's {rows} records would get less than"
                f" {float(LEAST[price.measure]):g}",
                document,
                (*path, price.measure),
                "raise it, or lower privacy.unit.rows",
            )
        if release.cut_by and self.neighbours == "substitute":
            refuse(
                "groups need neighbours: add-remove",
                document,
                (*path, "by"),
                "a record put in another's place may leave one group and enter another: it costs"
                " twice",
            )

    def check_caps(self, costs: Mapping[str, Cost], document: Document) -> None:
        """Require that the caps admit what each batch of a source costs.

        Args:
            costs: Least price of all releases and gates of a source for a batch, by source.
            document: The file.

        Raises:
            ConfigurationError: With its place in the file.
        """
        caps = self.caps.caps()
        if caps.batch_nano > caps.lifetime_nano:
            refuse(
                "the batch cap is above the lifetime cap",
                document,
                ("privacy", "caps", "batch"),
                "lower it, or raise the lifetime cap: each batch counts towards the lifetime",
            )
        for source, cost_in in costs.items():
            for limit in caps.limits:
                cost = cost_in(limit.measure)
                if cost > limit.nano:
                    about = "" if limit.measure == "epsilon" else f"{limit.measure} "
                    of_delta = ("delta",) if limit.measure == "delta" else ()
                    key = limit.name if limit.name in CAPS else "windows"
                    refuse(
                        f"the releases and gates of source {source!r} cost"
                        f" {about}{number_text(cost, limit.measure)} a batch, the {limit.name} cap"
                        f" is {number_text(limit.nano, limit.measure)}",
                        document,
                        ("privacy", "caps", *of_delta, key),
                        "raise the cap or lower an epsilon: some release could never be made",
                    )
