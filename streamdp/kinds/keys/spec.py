"""The release kind `keys`, for the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.kinds.keys.accuracy import KeysFound
from streamdp.kinds.keys.build import build
from streamdp.kinds.keys.check import check
from streamdp.kinds.keys.groups import groups_among
from streamdp.kinds.keys.section import KeysSection
from streamdp.kinds.spec import KindSpec

if TYPE_CHECKING:
    from streamdp.kinds.study import Study


def _study() -> Study:
    """Study of the kind, imported by `simulate` alone."""
    from streamdp.kinds.keys.study import KeysStudy

    return KeysStudy()


SPEC = KindSpec(
    "keys",
    KeysSection,
    check,
    build,
    KeysFound(),
    study=_study,
    pools_groups=True,
    groups=groups_among,
)
