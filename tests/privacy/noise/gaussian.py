"""The discrete Gaussian as production draws it: its law, its Rényi loss, and mistakes.

The law is enumerated over every way its chance can go (`ways`), so that what is measured is the
sampler and not a formula. ρ-zCDP asks that D_α(z + Δ ‖ z) ≤ αρ for every α > 1. At whole α the
bound is met exactly: D_α = α·Δ²/(2σ²).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest.mock import patch

from streamdp.privacy import draws
from streamdp.privacy.draws import discrete_gaussian
from tests.privacy.ways import coin, even_again, law_of

Law = Mapping[int, float]

VARIANCES = tuple(map(Fraction, ("1/2", "1", "7/3", "4", "25/2")))
ORDERS = (1.25, 1.5, 2.0, 3.0, 4.0)
SHIFTS = (1, 2)

REAL_COIN = draws.exponential_coin

NEGLIGIBLE = 1e-9
"""Shares below it are left out: enumeration stops at a share of 1e-12."""


def production_law(squared: Fraction) -> dict[int, float]:
    """P(z), of the sampler as it is."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(draws, "exactly_below", even_again))
        if draws.exponential_coin is REAL_COIN:
            stack.enter_context(patch.object(draws, "exponential_coin", coin))
        return law_of(lambda walk: discrete_gaussian(squared, walk))


def wanted(squared: Fraction, reach: int = 60) -> dict[int, float]:
    """P(z), of the formula."""
    weights = {z: math.exp(-z * z / (2 * float(squared))) for z in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


def off(one: Law, other: Law) -> float:
    """The largest difference of a probability."""
    return max(abs(one.get(z, 0.0) - other.get(z, 0.0)) for z in {*one, *other})


def renyi(law: Law, shift: int, order: float) -> float:
    """D_order(z + shift ‖ z), over what both can be."""
    likely = {z: share for z, share in law.items() if share > NEGLIGIBLE}
    both = [(likely[z - shift], q) for z, q in likely.items() if z - shift in likely]
    total = math.fsum(p**order * q ** (1.0 - order) for p, q in both)
    return math.log(total) / (order - 1.0)


def largest_ratio(squared: Fraction, law: Law | None = None) -> float:
    """Of the Rényi loss over α·ρ, ρ as it is charged: Δ²/(2σ²)."""
    law = production_law(squared) if law is None else law
    return max(
        renyi(law, shift, order) / (order * shift**2 / (2 * float(squared)))
        for shift in SHIFTS
        for order in ORDERS
    )


@dataclass(frozen=True)
class Mutant:
    """A mistake in the sampler.

    Args:
        name: What is wrong.
        changed: Puts it in place.
        loses: Whether it loses more than is charged; else its law is wrong and safe.
    """

    name: str
    changed: Callable[[], AbstractContextManager[Any]]
    loses: bool = True

    def law(self, squared: Fraction) -> dict[int, float]:
        """P(z) with the mistake."""
        with self.changed():
            return production_law(squared)


def _coin(numerator: int, denominator: int) -> AbstractContextManager[Any]:
    """Another coin where a proposal is accepted; proposals are tossed as they are."""
    real = draws.discrete_laplace

    def changed(part: int, whole: int, walk: Any) -> bool:
        return coin(numerator * part, denominator * whole, walk)

    def proposed(scale: Fraction, walk: Any) -> int:
        with patch.object(draws, "exponential_coin", coin):
            return real(scale, walk)

    return patch.multiple(draws, exponential_coin=changed, discrete_laplace=proposed)


def _proposal(step: int) -> AbstractContextManager[Any]:
    real = draws.discrete_laplace

    def changed(scale: Fraction, walk: Any) -> int:
        return real(scale + step, walk)

    return patch.object(draws, "discrete_laplace", changed)


MUTANTS = (
    Mutant("the coin's exponent without its half", lambda: _coin(2, 1)),
    Mutant("the coin's exponent two per cent too large", lambda: _coin(51, 50)),
    Mutant("proposals of a smaller scale than the coin's", lambda: _proposal(-1)),
    Mutant("proposals of a larger scale than the coin's", lambda: _proposal(1), loses=False),
    Mutant("a coin that always falls heads", lambda: _coin(0, 1), loses=False),
)


def rows() -> Iterator[tuple[str, float, str | None]]:
    """Name, largest ratio and mutant, of all."""
    for squared in VARIANCES:
        yield f"discrete-gaussian {squared}", largest_ratio(squared), None
    squared = Fraction(4)
    for mutant in MUTANTS:
        if mutant.loses:
            ratio = largest_ratio(squared, mutant.law(squared))
            yield f"discrete-gaussian {squared}", ratio, mutant.name
