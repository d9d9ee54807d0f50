"""The release kinds there are; other packages offer a `KindSpec` in the group `streamdp.kinds`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamdp.errors import InternalError
from streamdp.registry import Registry

if TYPE_CHECKING:
    from streamdp.kinds.section import ReleaseSection
    from streamdp.kinds.spec import KindSpec

OWN = {
    "quantiles": "streamdp.kinds.quantiles.spec:SPEC",
    "statistics": "streamdp.kinds.statistics.spec:SPEC",
    "workload": "streamdp.kinds.workload.spec:SPEC",
    "selection": "streamdp.kinds.selection.spec:SPEC",
    "experts": "streamdp.kinds.experts.spec:SPEC",
    "keys": "streamdp.kinds.keys.spec:SPEC",
}
"""Kinds of streamdp."""


def _spec(name: str, offer: Any) -> KindSpec | None:
    from streamdp.kinds.spec import KindSpec

    return offer if isinstance(offer, KindSpec) and offer.name == name else None


KINDS: Registry[KindSpec] = Registry("streamdp.kinds", "release kind", OWN, _spec)


def spec_of(section: ReleaseSection) -> KindSpec:
    """Specification of the kind of a section that was loaded."""
    spec = KINDS.find(section.kind)
    if spec is None:
        raise InternalError(f"there is no release kind {section.kind!r}")
    return spec
