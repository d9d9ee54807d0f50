"""The release kind `statistics`, for the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.kinds.spec import KindSpec
from streamdp.kinds.statistics.accuracy import CountError
from streamdp.kinds.statistics.build import build, tables
from streamdp.kinds.statistics.check import check
from streamdp.kinds.statistics.rows import left_out, row_count
from streamdp.kinds.statistics.section import StatisticsSection

if TYPE_CHECKING:
    from streamdp.kinds.study import Study


def _study() -> Study:
    """Study of the kind, imported by `simulate` alone."""
    from streamdp.kinds.statistics.study import StatisticsStudy

    return StatisticsStudy()


SPEC = KindSpec(
    "statistics",
    StatisticsSection,
    check,
    build,
    CountError(),
    study=_study,
    counts=tables,
    rows=row_count,
    pools_groups=True,
    left_out=left_out,
)
