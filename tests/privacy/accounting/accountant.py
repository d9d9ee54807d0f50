"""An accountant of its own: the loss of the worst mechanism that an event allows, order by order.

An event says what a mechanism may lose. Here each event is such a mechanism, with as much loss as
its words allow, and its Rényi divergence between inputs k records apart is computed from laws, not
from rules of composition:

* `pure`: randomised response whose odds move by e^ε a record;
* `bounded-range`: two outputs whose losses lie kε apart, wherever between -kε and kε is worst;
* `zero-concentrated`: Gaussian noise, k standard steps away;
* `sequence`: independent draws, divergences add up;
* `parallel`: draws on disjoint parts; the k records lie in them in the worst way;
* `choice`: the worst of them;
* `group`: inputs `size` times as many records apart.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from streamdp.types import Json

ORDERS = (1.01, 1.5, 2.0, 8.0, 64.0)

_BETWEEN = 200


def divergence(event: Json, order: float, records: int = 1) -> float:
    """Rényi divergence of an order between inputs so many records apart."""
    match event["type"]:
        case "pure":
            return _response(records * float(Fraction(event["epsilon"])), order)
        case "bounded-range":
            return _range(records * float(Fraction(event["epsilon"])), order)
        case "zero-concentrated":
            return order * records**2 * float(Fraction(event["rho"]))
        case "sequence":
            return math.fsum(divergence(each, order, records) for each in event["events"])
        case "choice":
            return max((divergence(each, order, records) for each in event["events"]), default=0.0)
        case "parallel":
            return max(
                math.fsum(
                    divergence(each, order, count)
                    for each, count in zip(event["events"], counts, strict=True)
                )
                for counts in _divided(records, len(event["events"]))
            )
        case "group":
            return divergence(event["event"], order, records * event["size"])
    raise AssertionError(json.dumps(event))


def _divided(records: int, parts: int) -> Iterator[Sequence[int]]:
    """All ways of at most so many records in parts."""
    if not parts:
        yield ()
        return
    for here in range(records + 1):
        for rest in _divided(records - here, parts - 1):
            yield (here, *rest)


@functools.lru_cache(maxsize=10_000)
def _response(epsilon: float, order: float) -> float:
    """Of two answers with odds e^ε and e^-ε."""
    likely = 1.0 / (1.0 + math.exp(-epsilon))
    return _two_points((epsilon, -epsilon), likely, order)


@functools.lru_cache(maxsize=10_000)
def _range(epsilon: float, order: float) -> float:
    """Of two outputs with losses t and t - ε, the worst over t."""
    if epsilon == 0.0:
        return 0.0
    worst = 0.0
    for step in range(1, _BETWEEN):
        upper = epsilon * step / _BETWEEN
        lower = upper - epsilon
        share = -math.expm1(-lower) / (math.exp(-upper) - math.exp(-lower))
        worst = max(worst, _two_points((upper, lower), share, order))
    return worst


def _two_points(losses: tuple[float, float], share: float, order: float) -> float:
    """ln E_P[e^((order - 1)·loss)]/(order - 1), `share` the probability of the first under P."""
    high = max(losses)
    tilted = share * math.exp((order - 1.0) * (losses[0] - high))
    tilted += (1.0 - share) * math.exp((order - 1.0) * (losses[1] - high))
    return high + math.log(tilted) / (order - 1.0)
