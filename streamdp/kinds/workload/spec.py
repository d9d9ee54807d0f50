"""The release kind `workload`, for the registry."""

from __future__ import annotations

from streamdp.kinds.spec import KindSpec
from streamdp.kinds.workload.accuracy import AverageError
from streamdp.kinds.workload.build import build
from streamdp.kinds.workload.check import check
from streamdp.kinds.workload.section import WorkloadSection

SPEC = KindSpec("workload", WorkloadSection, check, build, AverageError())
