"""The only place that names concrete adapters: from a configuration to things that work."""

from streamdp.wiring.adapters import (
    Wired,
    backends,
    caps_of,
    data,
    declare,
    hang_up,
    jobs,
    outside_sinks,
    require_admitted,
    require_same_data,
    start_log,
    store_paths,
    store_sinks,
    tasks,
    terms,
    wire,
)
from streamdp.wiring.gates import gate_kind
from streamdp.wiring.kinds import charging, counted, kind, release_kind, spec_of

__all__ = [
    "Wired",
    "backends",
    "caps_of",
    "charging",
    "counted",
    "data",
    "declare",
    "gate_kind",
    "hang_up",
    "jobs",
    "kind",
    "outside_sinks",
    "release_kind",
    "require_admitted",
    "require_same_data",
    "spec_of",
    "start_log",
    "store_paths",
    "store_sinks",
    "tasks",
    "terms",
    "wire",
]
