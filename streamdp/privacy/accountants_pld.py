"""Privacy loss distributions, where the extra `accounting` is installed; for reports only.

Every draw is replaced by a pair of laws that dominates it at every ε, so that products of pairs
dominate adaptive sequences (Zhu, Dong & Wang 2022, Theorem 10). With H(x) the largest
hockey-stick divergence at e^x, for x ≥ 0:

* `pure`: H(x) = (e^ε − e^x)/(1 + e^ε), randomised response (Kairouz, Oh & Viswanath 2015).
* `bounded-range`: the loss lies in [t − ε, t] for some t, and (1 − e^(x − loss))₊ is convex in
  e^(−loss), whose mean is 1: the worst law has both ends only, and H is the largest over t,
  attained at t = (x + ε)/2: H(x) = (1 − e^((x − ε)/2))²/(1 − e^(−ε)). A largest of convex
  functions is convex, so some pair has it.

Both classes hold a pair and its swap, so H(−x) = 1 − e^(−x) + e^(−x)·H(x). `parallel`,
`choice` and `group` count as pure events, which dominate whatever of the same ε was drawn. Events
of at most 1e-3 are added to ε as they are: on the grid of the library each would cost a step.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from importlib.util import find_spec

from streamdp.privacy.amounts import NANO
from streamdp.privacy.events import epsilon_of
from streamdp.types import Json

STEP = 1e-3
_SMALL = Fraction(1, 1000)

Draw = tuple[str, Fraction]


def installed() -> bool:
    """Whether the library is there."""
    return find_spec("dp_accounting") is not None


def draws_of(event: Json) -> Counter[Draw]:
    """The draws of an event that has a pure loss, one after the other.

    Each is bounded-range or pure. Those of an event with a delta are what it is but with that
    chance, so a sum of deltas is to be taken off the delta that their epsilon is asked at.

    Raises:
        ValueError: The event has no pure loss.
    """
    match event:
        case {"type": "sequence", "events": [*events]}:
            return sum((draws_of(each) for each in events), Counter[Draw]())
        case {"type": "bounded-range", "epsilon": str(epsilon)}:
            return Counter({("bounded-range", Fraction(epsilon)): 1})
        case {"type": "approximate", "event": event}:
            return draws_of(event)
    pure = epsilon_of(event)
    if pure is None:
        raise ValueError("a draw without pure loss has no pair of laws here")
    return Counter({("pure", pure): 1})


def epsilon_of_draws(draws: Counter[Draw], delta: Fraction) -> int:
    """Nano units of ε such that all draws together are (ε, δ)-DP.

    Raises:
        ImportError: The extra `accounting` is not installed.
    """
    from dp_accounting.pld import privacy_loss_distribution as library

    small, composed = Fraction(0), None
    for (kind, epsilon), times in sorted(draws.items()):
        if epsilon <= _SMALL:
            small += epsilon * times
            continue
        one = library.PrivacyLossDistribution(_distribution(kind, float(epsilon)))
        many = one.self_compose(times)
        composed = many if composed is None else composed.compose(many)
    found = 0.0 if composed is None else composed.get_epsilon_for_delta(float(delta) * (1 - 1e-6))
    if math.isinf(found):
        return math.ceil(sum((e * n for (_, e), n in draws.items()), Fraction(0)) * NANO)
    return math.ceil((Fraction(found) + small) * NANO)


def hockey_stick(kind: str, epsilon: float, at: float) -> float:
    """H(at), the largest divergence of a draw."""
    if at < 0:
        return -math.expm1(at) + math.exp(at) * hockey_stick(kind, epsilon, -at)
    if at >= epsilon:
        return 0.0
    if kind == "pure":
        return (math.exp(epsilon) - math.exp(at)) / (1.0 + math.exp(epsilon))
    return math.expm1((at - epsilon) / 2.0) ** 2 / -math.expm1(-epsilon)


def _distribution(kind: str, epsilon: float) -> Json:
    """The library's pessimistic distribution through points of H, a step apart."""
    from dp_accounting.pld import pld_pmf

    most = math.ceil(epsilon / STEP) + 1
    points: Iterable[int] = range(-most, most + 1)
    return pld_pmf.create_pmf_pessimistic_connect_dots(
        STEP, list(points), [hockey_stick(kind, epsilon, point * STEP) for point in points]
    )
