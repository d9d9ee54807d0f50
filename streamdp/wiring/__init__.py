"""The only place that names concrete adapters: from a configuration to things that work."""

from streamdp.wiring.adapters import (
    Wired,
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
from streamdp.wiring.sources import backends, data_of, records, same_data, source

__all__ = [
    "Wired",
    "backends",
    "caps_of",
    "charging",
    "counted",
    "data",
    "data_of",
    "declare",
    "gate_kind",
    "hang_up",
    "jobs",
    "kind",
    "outside_sinks",
    "records",
    "release_kind",
    "require_admitted",
    "require_same_data",
    "same_data",
    "source",
    "spec_of",
    "start_log",
    "store_paths",
    "store_sinks",
    "tasks",
    "terms",
    "wire",
]
