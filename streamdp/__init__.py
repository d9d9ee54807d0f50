"""Differentially private quantiles of every new batch, on a schedule, learning as it goes.

In a notebook: `open` reads a store, `release` makes one release that a `Ledger` pays for. What
they need is imported when they are first used.
"""

from __future__ import annotations

from streamdp.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from streamdp.library.ledger import Ledger
    from streamdp.library.reader import StoreReader, open
    from streamdp.library.release import Released, release
    from streamdp.library.table import Table


__all__ = ["Ledger", "Released", "StoreReader", "Table", "__version__", "open", "release"]

_MODULES = {
    "Ledger": "ledger",
    "Released": "release",
    "StoreReader": "reader",
    "Table": "table",
    "open": "reader",
    "release": "release",
}
"""Where in `streamdp.library` each name is defined."""


def __getattr__(name: str) -> object:
    """Import a name when it is first asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module 'streamdp' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"streamdp.library.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Names that are offered, imported or not."""
    return sorted({*globals(), *__all__})
