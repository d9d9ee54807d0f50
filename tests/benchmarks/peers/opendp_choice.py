"""OpenDP: the noisy best of a list of integer scores, and the noisy best k."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

Choose = Callable[[list[int]], list[int]]
"""Places of the chosen scores, best first."""


def choice(epsilon: float, top: int = 1, *, monotonic: bool = False) -> Choose | None:
    """Its report of the noisy max (permute-and-flip), or of the noisy top k; None if not installed.

    Args:
        epsilon: Pure loss for scores that a record changes by one at most.
        top: How many are chosen.
        monotonic: Whether it is told that a record moves all scores the same way.
    """
    try:
        dp: Any = importlib.import_module("opendp.prelude")
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = (
        dp.vector_domain(dp.atom_domain(T=dp.i32)),
        dp.linf_distance(T=dp.i32, monotonic=monotonic),
    )

    def make(scale: float) -> Any:
        if top == 1:
            return dp.m.make_noisy_max(*space, dp.max_divergence(), scale)
        return dp.m.make_noisy_top_k(*space, dp.max_divergence(), top, scale)

    draw = dp.binary_search_chain(make, d_in=1, d_out=epsilon)

    def choose(scores: list[int]) -> list[int]:
        found = draw(scores)
        return [found] if top == 1 else list(found)

    return choose
