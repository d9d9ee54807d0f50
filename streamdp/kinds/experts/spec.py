"""The release kind `experts`, for the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.kinds.experts.accuracy import Regret
from streamdp.kinds.experts.build import build, rules
from streamdp.kinds.experts.check import check
from streamdp.kinds.experts.section import ExpertsSection
from streamdp.kinds.spec import KindSpec

if TYPE_CHECKING:
    from streamdp.kinds.study import Study


def _study() -> Study:
    """Study of the kind, imported by `simulate` alone."""
    from streamdp.kinds.experts.study import ExpertsStudy

    return ExpertsStudy()


SPEC = KindSpec("experts", ExpertsSection, check, build, Regret(), rules=rules, study=_study)
