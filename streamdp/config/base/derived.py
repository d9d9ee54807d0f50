"""A value made of the columns of one record, in place of a column."""

from __future__ import annotations

from pydantic import Field

from streamdp.config.base.expressions import OfOneRecord
from streamdp.config.base.section import Section


class Derived(Section):
    """A value made of the columns of one record."""

    sql: OfOneRecord = Field(
        description="SQL expression of one record, in DuckDB's dialect whatever the engine.",
        examples=["price * pieces"],
    )
