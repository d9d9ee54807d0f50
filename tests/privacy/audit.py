"""A black-box audit: only released values of two neighbours are looked at.

On one half of the draws the event is chosen whose log-ratio of frequencies is largest; on the
other half its two probabilities are bounded by Clopper & Pearson 1934. So the bound holds with
the confidence asked for, however the event was found.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable

Draw = Callable[[], Hashable]


def epsilon_lower_bound(pair: tuple[Draw, Draw], count: int, confidence: float = 0.999) -> float:
    """What epsilon is at least, by `count` draws from each of two neighbours."""
    half = count // 2
    first = [Counter(draw() for _ in range(half)) for draw in pair]
    event = _best_event(first[0], first[1], half)
    second = [Counter(draw() for _ in range(half)) for draw in pair]
    hits = [sum(counter[each] for each in event) for counter in second]
    risk = (1.0 - confidence) / 2.0
    return math.log(_lower(hits[0], half, risk) / _upper(hits[1], half, risk))


def _best_event(
    mine: Counter[Hashable], other: Counter[Hashable], total: int
) -> frozenset[Hashable]:
    """Of the events {ratio >= r}, the one whose bound looks largest."""
    ratio = {each: mine[each] / (other[each] + 1.0) for each in mine}
    event: list[Hashable] = []
    best, best_event = -math.inf, frozenset[Hashable]()
    for each in sorted(ratio, key=ratio.__getitem__, reverse=True):
        event.append(each)
        hits = [sum(counter[one] for one in event) for counter in (mine, other)]
        guess = math.log(_lower(hits[0], total, 0.01) / _upper(hits[1], total, 0.01))
        if guess > best:
            best, best_event = guess, frozenset(event)
    return best_event


def _lower(hits: int, total: int, risk: float) -> float:
    from scipy.stats import beta

    return float(beta.ppf(risk, hits, total - hits + 1)) if hits else 1e-300


def _upper(hits: int, total: int, risk: float) -> float:
    from scipy.stats import beta

    return float(beta.ppf(1.0 - risk, hits + 1, total - hits)) if hits < total else 1.0
