"""The release kind `quantiles`, for the registry."""

from __future__ import annotations

from streamdp.kinds.quantiles.accuracy import RankError
from streamdp.kinds.quantiles.build import build, question
from streamdp.kinds.quantiles.check import check
from streamdp.kinds.quantiles.section import QuantilesSection
from streamdp.kinds.spec import KindSpec

SPEC = KindSpec("quantiles", QuantilesSection, check, build, RankError(), question)
