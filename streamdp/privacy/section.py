"""The section `privacy`: who is protected, and how much one of them may lose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from streamdp.privacy.accountants import epsilon_of_rho
from streamdp.privacy.amounts import NANO, NO_DELTA, NO_PURE_LOSS, number_text
from streamdp.privacy.caps_section import CapsSection
from streamdp.privacy.filters import LARGEST_PRICE, NO_DELTA_LIMIT, Measure
from streamdp.privacy.price import LEAST
from streamdp.sections.document import Document, Path, refuse
from streamdp.sections.section import Section
from streamdp.types import MOST_ROWS_PER_UNIT, UnitBound

if TYPE_CHECKING:
    from streamdp.kinds.section import ReleaseSection

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
        " batch is two steps. Default `add-remove`.",
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
                "lower it, or set privacy.allow_large_epsilon: true",
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
