"""From YAML to frozen objects: every bad value is refused here, before any data is touched."""

from streamdp.config.base.schedules import Schedule, next_times
from streamdp.config.load import load
from streamdp.config.model import Configuration, json_schema

__all__ = ["Configuration", "Schedule", "json_schema", "load", "next_times"]
