"""The release kind `statistics`, for the registry."""

from __future__ import annotations

from streamdp.kinds.spec import KindSpec
from streamdp.kinds.statistics.accuracy import CountError
from streamdp.kinds.statistics.build import build, tables
from streamdp.kinds.statistics.check import check
from streamdp.kinds.statistics.rows import row_count
from streamdp.kinds.statistics.section import StatisticsSection

SPEC = KindSpec(
    "statistics",
    StatisticsSection,
    check,
    build,
    CountError(),
    counts=tables,
    rows=row_count,
    pools_groups=True,
)
