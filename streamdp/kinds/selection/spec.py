"""The release kind `selection`, for the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.kinds.selection.accuracy import Shortfall
from streamdp.kinds.selection.build import build, rules, scored
from streamdp.kinds.selection.check import check
from streamdp.kinds.selection.section import SelectionSection
from streamdp.kinds.spec import KindSpec

if TYPE_CHECKING:
    from streamdp.kinds.study import Study


def _study() -> Study:
    """Study of the kind, imported by `simulate` alone."""
    from streamdp.kinds.selection.study import SelectionStudy

    return SelectionStudy()


SPEC = KindSpec(
    "selection",
    SelectionSection,
    check,
    build,
    Shortfall(),
    rules=rules,
    scored=scored,
    study=_study,
)
