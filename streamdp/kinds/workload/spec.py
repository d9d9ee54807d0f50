"""The release kind `workload`, for the registry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamdp.kinds.spec import KindSpec
from streamdp.kinds.workload.accuracy import AverageError
from streamdp.kinds.workload.build import build
from streamdp.kinds.workload.check import check
from streamdp.kinds.workload.section import WorkloadSection
from streamdp.types import Row

if TYPE_CHECKING:
    from streamdp.kinds.study import Study
    from streamdp.kinds.workload.ask import Answer


def _ask(section: WorkloadSection, rows: Sequence[Row], text: str) -> Answer:
    """Imported when it is used: nothing else needs it."""
    from streamdp.kinds.workload.ask import ask

    return ask(section, rows, text)


def _study() -> Study:
    """Study of the kind, imported by `simulate` alone."""
    from streamdp.kinds.workload.study import WorkloadStudy

    return WorkloadStudy()


SPEC = KindSpec("workload", WorkloadSection, check, build, AverageError(), study=_study, ask=_ask)
