"""The unit of privacy: what is one record, or who may have several in a batch."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from streamdp.config.base.section import Section
from streamdp.types import MOST_ROWS_PER_UNIT, UnitBound


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
