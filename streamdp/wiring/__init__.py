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
from streamdp.wiring.priors import learner
from streamdp.wiring.quantiles import kind, release_kind, shapes
from streamdp.wiring.sources import data_of, same_data, source

__all__ = [
    "caps_of",
    "data",
    "data_of",
    "declare",
    "gate_kind",
    "hang_up",
    "jobs",
    "kind",
    "learner",
    "release_kind",
    "same_data",
    "shapes",
    "source",
    "start_log",
    "store_paths",
    "tasks",
    "terms",
    "worker",
]
