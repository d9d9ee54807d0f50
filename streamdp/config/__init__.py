"""From YAML to frozen objects: every bad value is refused here, before any data is touched.

Names are imported when they are first used: sections of adapters are made of `config.base`, and
the model is made of those sections.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamdp.config.base.schedules import Schedule, next_times
    from streamdp.config.loader import load
    from streamdp.config.model import Configuration, json_schema

_HOMES = {
    "Configuration": "model",
    "Schedule": "base.schedules",
    "json_schema": "model",
    "load": "loader",
    "next_times": "base.schedules",
}

__all__ = ["Configuration", "Schedule", "json_schema", "load", "next_times"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
