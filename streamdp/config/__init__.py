"""From YAML to frozen objects: every bad value is refused here, before any data is touched.

Names are imported when they are first used: the sections of all rooms make the model.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamdp.config.loader import load
    from streamdp.config.model import Configuration, json_schema

_HOMES = {"Configuration": "model", "json_schema": "model", "load": "loader"}

__all__ = ["Configuration", "json_schema", "load"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
