"""The only place that names concrete adapters: from a configuration to things that work."""

from streamdp.wiring.adapters import declare, hang_up, jobs, start_log, store_paths, terms, worker
from streamdp.wiring.priors import learner
from streamdp.wiring.quantiles import kind, release_kind, shapes
from streamdp.wiring.sources import source

__all__ = [
    "declare",
    "hang_up",
    "jobs",
    "kind",
    "learner",
    "release_kind",
    "shapes",
    "source",
    "start_log",
    "store_paths",
    "terms",
    "worker",
]
