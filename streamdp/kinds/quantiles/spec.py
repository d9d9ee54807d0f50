"""The release kind `quantiles`, for the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.kinds.quantiles.accuracy import RankError
from streamdp.kinds.quantiles.build import build, question
from streamdp.kinds.quantiles.check import check
from streamdp.kinds.quantiles.section import QuantilesSection
from streamdp.kinds.spec import KindSpec

if TYPE_CHECKING:
    from streamdp.kinds.study import Study


def _study() -> Study:
    """Study of the kind, imported by `simulate` alone."""
    from streamdp.kinds.quantiles.study import QuantilesStudy

    return QuantilesStudy()


SPEC = KindSpec(
    "quantiles", QuantilesSection, check, build, RankError(), question, _study, expects_rows=True
)
