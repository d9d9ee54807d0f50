"""OpenDP: private quantiles over candidates (linear, log grid), and its tree of counts."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from streamdp.types import FloatArray
from tests.benchmarks.peers import Bounds, Release

CANDIDATES = 1000
LEAVES = 1024
BRANCHING = 16
"""The best of 2, 4, 16, 26 (its own choice) and 32 on normal data."""


def releases() -> dict[str, Release]:
    """Its three ways; none if it is not installed."""
    try:
        prelude = importlib.import_module("opendp.prelude")
    except ImportError:
        return {}
    prelude.enable_features("contrib")
    linear = functools.partial(_by_candidates, prelude, False)
    logarithmic = functools.partial(_by_candidates, prelude, True)
    return {
        "opendp linear": linear,
        "opendp log": logarithmic,
        "opendp tree": functools.partial(_by_tree, prelude),
    }


def _by_candidates(
    dp: Any,
    logarithmic: bool,
    values: FloatArray,
    quantiles: Sequence[float],
    epsilon: float,
    bounds: Bounds,
    generator: np.random.Generator,
) -> list[float]:
    del generator  # it draws from the operating system
    lower, upper = bounds
    candidates = np.linspace(lower, upper, CANDIDATES)
    if logarithmic:
        candidates = np.geomspace(max(lower, upper * 1e-9), upper, CANDIDATES)
    found = [
        _candidate_draw(dp, tuple(candidates.tolist()), alpha, epsilon / len(quantiles))(
            values.tolist()
        )
        for alpha in quantiles
    ]
    return sorted(found)


@functools.lru_cache(maxsize=256)
def _candidate_draw(dp: Any, candidates: tuple[float, ...], alpha: float, epsilon: float) -> Any:
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()

    def make(scale: float) -> Any:
        return dp.m.make_private_quantile(
            *space, dp.max_divergence(), list(candidates), alpha, scale
        )

    return dp.binary_search_chain(make, d_in=1, d_out=epsilon)


def _by_tree(
    dp: Any,
    values: FloatArray,
    quantiles: Sequence[float],
    epsilon: float,
    bounds: Bounds,
    generator: np.random.Generator,
) -> list[float]:
    del generator
    edges = np.linspace(*bounds, LEAVES + 1)
    counts, _ = np.histogram(values, edges)
    noisy, smooth = _tree_draw(dp, epsilon)
    leaves = smooth(noisy(counts.tolist()))
    read = dp.t.make_quantiles_from_counts(edges.tolist(), list(quantiles), TA=float)
    return sorted(read(leaves))


@functools.lru_cache(maxsize=8)
def _tree_draw(dp: Any, epsilon: float) -> tuple[Any, Any]:
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    tree = dp.t.make_b_ary_tree(*space, leaf_count=LEAVES, branching_factor=BRANCHING)

    def make(scale: float) -> Any:
        return tree >> dp.m.then_laplace(scale)

    draw = dp.binary_search_chain(make, d_in=1, d_out=epsilon)
    smooth = dp.t.make_consistent_b_ary_tree(branching_factor=BRANCHING)
    return draw, smooth
