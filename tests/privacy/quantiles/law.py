"""The exact law of the production code: every branch of its chance, with its probability.

Production asks for chance through `choose` and `uniform_below` (`streamdp.privacy.draws`). Here
both fork: the code under test runs once for every sequence of answers, and the probability of an
answer is the exact share of the entropy's integers that lead to it. Nothing is re-implemented:
the integers behind a choice are read off the real `choose`, by asking it on both sides of every
border between two answers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, TypeVar, cast

import numpy as np

from streamdp.mechanisms.quantile_tree import grains
from streamdp.mechanisms.quantile_tree.points import public_points
from streamdp.privacy import draws
from streamdp.types import Entropy, FloatArray

T = TypeVar("T")
Answers = tuple[tuple[int, Fraction], ...]
Law = dict[T, Fraction]

_real_choose = draws.choose
_real_uniform = draws.uniform_below
_known_choices: dict[bytes, Answers] = {}


def law_of(draw: Callable[[Entropy], T]) -> Law[T]:
    """P(outcome) of a draw, exact; call it inside `forking()`."""
    law: Law[T] = {}
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        path = waiting.pop()
        run = _Run(path)
        outcome = draw(cast(Entropy, run))
        law[outcome] = law.get(outcome, Fraction(0)) + run.probability
        for depth in range(len(path), len(run.taken)):
            others = range(1, run.widths[depth])
            waiting += [(*run.taken[:depth], other) for other in others]
    return law


@contextmanager
def forking(grain_count: int | None = None) -> Iterator[None]:
    """Inside, production forks at every choice; and a cell has `grain_count` grains."""
    choose = replaced("choose", _real_choose, _fork_choose)
    with choose, replaced("uniform_below", _real_uniform, _fork_uniform):
        if grain_count is None:
            yield
            return
        with replaced("GRAINS", grains.GRAINS, grain_count):
            public_points.cache_clear()
            yield
    public_points.cache_clear()


@contextmanager
def replaced(name: str, old: object, new: object) -> Iterator[None]:
    """Wherever a module of streamdp has imported `old` as `name`, it finds `new`."""
    modules = [
        module
        for title, module in list(sys.modules.items())
        if title.startswith("streamdp.")
        and title != "streamdp.privacy.draws"
        and getattr(module, name, None) is old
    ]
    if not modules:
        raise LookupError(f"no module of streamdp uses {name}")
    for module in modules:
        setattr(module, name, new)
    try:
        yield
    finally:
        for module in modules:
            setattr(module, name, old)


class _Run:
    """One walk through the code under test: the answers of `path`, then first answers."""

    def __init__(self, path: tuple[int, ...]) -> None:
        self._path = path
        self.taken: list[int] = []
        self.widths: list[int] = []
        self.probability = Fraction(1)

    def answer(self, answers: Answers) -> int:
        depth = len(self.taken)
        number = self._path[depth] if depth < len(self._path) else 0
        self.taken.append(number)
        self.widths.append(len(answers))
        value, probability = answers[number]
        self.probability *= probability
        return value

    def bits(self, count: int) -> int:
        raise AssertionError("chance that does not pass through choose or uniform_below")


def _fork_choose(log_weights: FloatArray, entropy: Any) -> int:
    key = np.asarray(log_weights, dtype=np.float64).tobytes()
    if key not in _known_choices:
        _known_choices[key] = choice_law(log_weights)
    return cast(_Run, entropy).answer(_known_choices[key])


def _fork_uniform(bound: int, entropy: Any) -> int:
    answers = tuple((value, _share(value, value + 1, bound)) for value in range(bound))
    return cast(_Run, entropy).answer(answers)


def choice_law(log_weights: FloatArray) -> Answers:
    """The exact law of the real `choose`, walked along its borders.

    The expected width of each answer, an integer, is formed as the documentation says; the real
    code must then give that answer on the first and last ticket of its stretch, the stretches
    must fill the whole range, and so no ticket is left that could lead elsewhere.
    """
    if not np.isfinite(log_weights).any():
        return ((_real_choose(log_weights, _Bits(0)), Fraction(1)),)
    widths = expected_widths(log_weights)
    total = sum(widths)
    answers: list[tuple[int, Fraction]] = []
    ticket = 0
    while ticket < total:
        answer = _real_choose(log_weights, _Ticket(ticket, total))
        end = ticket + widths[answer]
        last = _real_choose(log_weights, _Ticket(end - 1, total))
        if last != answer or end > total or widths[answer] == 0:
            raise AssertionError("choose does not give its weights")
        answers.append((answer, _share(ticket, end, total)))
        ticket = end
    if len({answer for answer, _ in answers}) != len(answers):
        raise AssertionError("choose answers twice")
    return tuple(answers)


def expected_widths(log_weights: FloatArray) -> list[int]:
    """Integers in proportion to exp(w): 42 bits times a power of two."""
    shifted = (log_weights - log_weights.max()) * (1.0 / math.log(2.0))
    lowest = int(np.floor(shifted[np.isfinite(shifted)].min()))
    return [
        int(np.rint(np.exp2(each - np.floor(each) + draws.MANTISSA_BITS)))
        << (int(np.floor(each)) - lowest)
        if np.isfinite(each)
        else 0
        for each in shifted
    ]


def _share(start: int, stop: int, bound: int) -> Fraction:
    """Probability that uniform_below(bound) falls in [start, stop)."""
    count = bound.bit_length() + draws.SPARE_BITS
    return Fraction(_first_bits(stop, bound, count) - _first_bits(start, bound, count), 1 << count)


def _first_bits(value: int, bound: int, count: int) -> int:
    """Smallest r with r·bound/2^count >= value."""
    return -((-value << count) // bound)


class _Bits:
    """Entropy that answers one number."""

    def __init__(self, value: int) -> None:
        self._value = value

    def bits(self, count: int) -> int:
        return self._value


class _Ticket:
    """Entropy under which the real uniform_below(bound) returns one ticket."""

    def __init__(self, ticket: int, bound: int) -> None:
        self._ticket, self._bound = ticket, bound

    def bits(self, count: int) -> int:
        if count != self._bound.bit_length() + draws.SPARE_BITS:
            raise AssertionError("choose has another total than its weights")
        return _first_bits(self._ticket, self._bound, count)
