"""A value made of the columns of one record, in place of a column."""

from __future__ import annotations

from pydantic import Field, field_validator

from streamdp.config.base.expressions import expression
from streamdp.config.base.section import Section


class Derived(Section):
    """A value made of the columns of one record."""

    sql: str = Field(
        description="SQL expression of one record, in DuckDB's dialect whatever the engine.",
        examples=["price * pieces"],
    )

    @field_validator("sql")
    @classmethod
    def _of_one_record(cls, value: str) -> str:
        expression(value)
        return value
