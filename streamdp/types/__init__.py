"""The nouns: frozen values that pass between the layers, and the protocols they speak."""

from streamdp.types.batches import Batch, Belongs, File, Grid
from streamdp.types.charges import Charge, Reservation, Run
from streamdp.types.columns import Column, ColumnType
from streamdp.types.forms import FloatArray, Format, IntArray, Json, Neighbours, Row, Rows
from streamdp.types.gates import Answer, GateRun, Past
from streamdp.types.protocols import (
    Backend,
    Charging,
    Clock,
    Entropy,
    ExpectsRows,
    GateKind,
    Log,
    Prior,
    ReadsReleases,
    ReleaseKind,
    Sink,
    Source,
)
from streamdp.types.queries import Query, Statistic, with_bound, with_groups
from streamdp.types.questions import MOST_ROWS_PER_UNIT, CellCounts, CellQuery, UnitBound
from streamdp.types.records import RECORD, Made
from streamdp.types.releases import Delivery, Failure, Learned, Outcome, Plan, Release
from streamdp.types.tables import (
    CompoundAnswer,
    CompoundQuery,
    Dimension,
    SumQuery,
    Sums,
    TableCounts,
    TableQuery,
    Term,
)

__all__ = [
    "MOST_ROWS_PER_UNIT",
    "RECORD",
    "Answer",
    "Backend",
    "Batch",
    "Belongs",
    "CellCounts",
    "CellQuery",
    "Charge",
    "Charging",
    "Clock",
    "Column",
    "ColumnType",
    "CompoundAnswer",
    "CompoundQuery",
    "Delivery",
    "Dimension",
    "Entropy",
    "ExpectsRows",
    "Failure",
    "File",
    "FloatArray",
    "Format",
    "GateKind",
    "GateRun",
    "Grid",
    "IntArray",
    "Json",
    "Learned",
    "Log",
    "Made",
    "Neighbours",
    "Outcome",
    "Past",
    "Plan",
    "Prior",
    "Query",
    "ReadsReleases",
    "Release",
    "ReleaseKind",
    "Reservation",
    "Row",
    "Rows",
    "Run",
    "Sink",
    "Source",
    "Statistic",
    "SumQuery",
    "Sums",
    "TableCounts",
    "TableQuery",
    "Term",
    "UnitBound",
    "with_bound",
    "with_groups",
]
