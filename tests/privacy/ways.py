"""Probability of each outcome of a draw, over every way that its chance can go.

A draw is walked along ways: lists of the answers to its forks. Ways are followed in order of
their probability until a share of 1e-12 is left, so that loops may be endless. Rejection that
begins the draw anew is a walk cut short: what is drawn has the law of the walks that are not.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Way = tuple[int, ...]
T = TypeVar("T")


class _UnwrittenError(Exception):
    """A walk came to a fork that its way says nothing of; holds the weights of the answers."""


class AgainError(Exception):
    """A walk begins anew, as if nothing had been: what was drawn is the law without such walks."""


class Walk:
    """Answers every fork as a way says."""

    def __init__(self, way: Way) -> None:
        self._way, self._place, self.begun = way, 0, 0

    def answer(self, weights: Sequence[float]) -> int:
        if self._place == len(self._way):
            raise _UnwrittenError(weights)
        self._place += 1
        return self._way[self._place - 1]

    def begin(self) -> None:
        """Rejection begins a walk again."""
        if self.begun:
            raise AgainError
        self.begun += 1

    def bits(self, count: int) -> int:
        return self.answer([0.5**count] * 2**count)


class Rejecting(Walk):
    """Begins at each request of bits."""

    def bits(self, count: int) -> int:
        self.begin()
        return super().bits(count)


def law_of(
    draw: Callable[[Any], T], walk: Callable[[Way], Walk] = Walk, *, whole: bool = True
) -> dict[T, float]:
    """Probability of each outcome, over all ways but a share of 1e-12.

    Args:
        draw: Called with a walk in place of entropy.
        walk: Makes one of a way.
        whole: Whether what is cut short is drawn anew; else it is an outcome left out.
    """
    found: dict[T, float] = {}
    waiting: list[tuple[float, Way]] = [(-1.0, ())]
    while waiting and sum(weight for weight, _ in waiting) < -1e-12:
        weight, way = heapq.heappop(waiting)
        try:
            drawn = draw(walk(way))
        except AgainError:
            continue
        except _UnwrittenError as fork:
            for number, share in enumerate(fork.args[0]):
                heapq.heappush(waiting, (weight * share, (*way, number)))
        else:
            found[drawn] = found.get(drawn, 0.0) - weight
    total = sum(found.values()) if whole else 1.0
    return {value: share / total for value, share in found.items()}


def even(bound: int, walk: Any) -> int:
    """A uniform integer, as one fork."""
    return int(walk.answer([1 / bound] * bound))


def even_again(bound: int, walk: Any) -> int:
    """A uniform integer that begins a walk: a second one in it is a rejection."""
    walk.begin()
    return even(bound, walk)


def coin(part: int, whole: int, walk: Any) -> bool:
    """A coin of bias e^(-part/whole), as one fork; no fork where it is sure."""
    heads = math.exp(-part / whole)
    return heads == 1.0 or bool(walk.answer([1 - heads, heads]))
