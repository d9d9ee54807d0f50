"""A memory as JSON, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamdp.kinds.workload.fitting.concentration import Concentration
from streamdp.kinds.workload.fitting.distribution import Potentials
from streamdp.kinds.workload.fitting.hypotheses import Memory
from streamdp.kinds.workload.fitting.marginals import Workload
from streamdp.kinds.workload.fitting.spread import Spread
from streamdp.kinds.workload.fitting.unlisted import Unlisted
from streamdp.types import Json

DIGITS = 6
"""Decimals of a potential that are kept."""


def to_json(memory: Memory) -> Json:
    """One number an answer and a hypothesis."""
    return {
        "releases": memory.releases,
        "total": memory.total,
        "slow": _lists(memory.slow),
        "last": _lists(memory.last),
        "evidence": list(memory.evidence),
        "omegas": list(memory.spread.omegas),
        "uniform": memory.spread.uniform,
        "ages": list(memory.spread.ages),
        "concentrations": list(memory.concentration.sums),
        "seen": list(memory.concentration.weights),
        "unlisted": [list(shares) for shares in memory.unlisted.shares],
    }


def from_json(state: Json, workload: Workload) -> Memory:
    """The memory that was written.

    Raises:
        ValueError: It is of another workload.
    """
    first, second, third = map(float, state["evidence"])
    omegas = tuple(map(float, state["omegas"]))
    spread = Spread(omegas, float(state["uniform"]), tuple(map(int, state["ages"])))
    slow, last = (_arrays(state[name], workload) for name in ("slow", "last"))
    known = first, second, third
    concentration = Concentration.first(len(workload.items))
    if "seen" in state:  # earlier releases kept none
        sums, weights = (tuple(map(float, state[name])) for name in ("concentrations", "seen"))
        concentration = Concentration(sums, weights)
    unlisted = Unlisted.first(workload)
    if "unlisted" in state:
        unlisted = Unlisted(tuple(tuple(map(float, shares)) for shares in state["unlisted"]))
    releases, total = int(state["releases"]), float(state["total"])
    return Memory(releases, total, slow, last, known, spread, concentration, unlisted)


def _lists(potentials: Potentials) -> list[list[float]]:
    return [np.round(each, DIGITS).tolist() for each in potentials]


def _arrays(lists: Sequence[Sequence[float]], workload: Workload) -> Potentials:
    arrays = tuple(np.array(each, dtype=np.float64) for each in lists)
    if [each.shape for each in arrays] != [(item.size,) for item in workload.items]:
        raise ValueError("the state is of another workload")
    return arrays
