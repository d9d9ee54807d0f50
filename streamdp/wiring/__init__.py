"""The only place that names concrete adapters: from a configuration to things that work."""

from streamdp.wiring.adapters import declare, jobs, start_log, store_paths, terms, worker
from streamdp.wiring.priors import learner
from streamdp.wiring.quantiles import kind, release_kind, shapes
from streamdp.wiring.sources import data_of, same_data, source

__all__ = [
    "data_of",
    "declare",
    "jobs",
    "kind",
    "learner",
    "release_kind",
    "same_data",
    "shapes",
    "source",
    "start_log",
    "store_paths",
    "terms",
    "worker",
]
