"""The only place that names concrete adapters: from a configuration to things that work."""

from streamdp.wiring.adapters import (
    caps_of,
    data,
    declare,
    hang_up,
    jobs,
    start_log,
    store_paths,
    tasks,
    terms,
    worker,
)
from streamdp.wiring.gates import gate_kind
from streamdp.wiring.kinds import charging, kind, release_kind, spec_of
from streamdp.wiring.sources import data_of, same_data, source

__all__ = [
    "caps_of",
    "charging",
    "data",
    "data_of",
    "declare",
    "gate_kind",
    "hang_up",
    "jobs",
    "kind",
    "release_kind",
    "same_data",
    "source",
    "spec_of",
    "start_log",
    "store_paths",
    "tasks",
    "terms",
    "worker",
]
