from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from math import factorial

import numpy as np

from tests.benchmarks.peers import gillenwater, kaplan

VALUES = np.array([1.0, 2.0, 5.0, 6.0])
QUANTILES = [0.3, 0.6, 0.8]
BOUNDS = (0.0, 8.0)
EPSILON = 3.0


def brute_force() -> dict[tuple[int, ...], float]:
    """JointExp's law over the intervals of the sorted draws, from its definition."""
    edges = np.array([BOUNDS[0], *VALUES, BOUNDS[1]])
    shares = np.diff([0.0, *QUANTILES, 1.0])
    law = {}
    for intervals in combinations_with_replacement(range(len(edges) - 1), len(QUANTILES)):
        counts = np.diff([0, *intervals, len(VALUES)])
        cost = np.abs(counts - shares * len(VALUES)).sum()
        volume = np.prod([np.diff(edges)[each] for each in intervals])
        volume /= np.prod([factorial(repeats) for repeats in Counter(intervals).values()])
        law[intervals] = volume * np.exp(-EPSILON / (4.0 * (1.0 - shares.min())) * cost)
    total = sum(law.values())
    return {intervals: weight / total for intervals, weight in law.items()}


def test_joint_exp_follows_its_definition() -> None:
    """Frequencies of 4,000 draws agree with the law over all sorted tuples of intervals."""
    generator, law = np.random.default_rng(7), brute_force()
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(4_000):
        released = gillenwater.release(VALUES, QUANTILES, EPSILON, BOUNDS, generator)
        seen[tuple(np.searchsorted(VALUES, released).tolist())] += 1
    assert max(abs(seen[each] / 4_000 - law[each]) for each in law) < 0.035
    assert sum(seen[each] for each in law) == 4_000


def test_halving_finds_the_quantiles_when_it_may_look() -> None:
    """With a very large epsilon the reference of the tree releases the quantiles themselves."""
    values = np.sort(np.random.default_rng(1).normal(size=1001))
    released = kaplan.release(
        values, [0.25, 0.5, 0.75], 1e4, (-10.0, 10.0), np.random.default_rng(2)
    )
    assert np.allclose(released, np.quantile(values, [0.25, 0.5, 0.75]), atol=0.02)
