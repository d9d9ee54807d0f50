"""The release kinds there are: those of streamdp, and those that other packages offer.

Another package offers one as an entry point of the group `streamdp.kinds`, whose value is a
`KindSpec`:

    [project.entry-points."streamdp.kinds"]
    my-kind = "my_package.my_kind:SPEC"
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from streamdp.errors import ConfigurationError

if TYPE_CHECKING:
    from streamdp.kinds.spec import KindSpec

GROUP = "streamdp.kinds"

OWN = {
    "quantiles": "streamdp.kinds.quantiles.spec:SPEC",
    "statistics": "streamdp.kinds.statistics.spec:SPEC",
    "workload": "streamdp.kinds.workload.spec:SPEC",
    "selection": "streamdp.kinds.selection.spec:SPEC",
    "experts": "streamdp.kinds.experts.spec:SPEC",
    "keys": "streamdp.kinds.keys.spec:SPEC",
}
"""Kinds of streamdp; one is imported when it is first asked for."""


def names() -> list[str]:
    """All kinds there are, those of streamdp first."""
    return list(_offers())


def find(name: str) -> KindSpec | None:
    """The kind of a name, or None.

    Raises:
        ConfigurationError: The package that offers it cannot be imported or offers something else.
    """
    return _loaded(_offers()[name]) if name in _offers() else None


def all_kinds() -> Iterator[KindSpec]:
    """Every kind there is.

    Raises:
        ConfigurationError: As `find`.
    """
    return map(_loaded, _offers().values())


def forget() -> None:
    """Look for kinds anew when next asked: packages were installed or removed."""
    _offers.cache_clear()
    _loaded.cache_clear()


@functools.cache
def _offers() -> dict[str, EntryPoint]:
    """Entry points by name; a package cannot take the name of a kind of streamdp."""
    others = {point.name: point for point in entry_points(group=GROUP)}
    return {name: EntryPoint(name, value, GROUP) for name, value in OWN.items()} | {
        name: point for name, point in others.items() if name not in OWN
    }


@functools.cache
def _loaded(point: EntryPoint) -> KindSpec:
    from streamdp.kinds.spec import KindSpec

    try:
        spec = point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"the release kind {point.name!r} cannot be loaded: {error}",
            where=point.value,
            hint="repair or remove the package that offers it",
        ) from None
    if not isinstance(spec, KindSpec) or spec.name != point.name:
        raise ConfigurationError(
            f"the entry point {point.name!r} of {GROUP} is no KindSpec of that name",
            where=point.value,
        )
    return spec
