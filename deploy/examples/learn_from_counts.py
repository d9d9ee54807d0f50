"""Learn a naive Bayes predictor from the released counts of queries.yaml, and print its weights.

Everything here reads releases, so it costs no privacy: run it as often as you like.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict

import streamdp

CONDITIONS = ("held", "slow", "evening", "newark")


def learned(store: str) -> dict[str, tuple[float, float]]:
    """Return the evidence of each condition, in nats, where it holds and where it does not.

    Under the name `late` stands the evidence before any condition is known.
    """
    sums: dict[str, float] = defaultdict(float)
    for row in streamdp.open(store).releases("queries", last=None).rows:
        sums[str(row["measure"])] += float(row["value"])
    late, on_time = sums["late"], sums["all"] - sums["late"]
    found = {"late": (math.log(late / on_time),) * 2}
    for name in CONDITIONS:
        among_late = share(sums[f"{name}_late"], late)
        among_others = share(sums[name] - sums[f"{name}_late"], on_time)
        yes = math.log(among_late / among_others)
        no = math.log((1.0 - among_late) / (1.0 - among_others))
        found[name] = yes, no
    return found


def share(part: float, whole: float) -> float:
    """Return a share of noisy counts, within (0, 1)."""
    return min(max(part / whole, 0.001), 0.999)


def foretold(evidence: dict[str, tuple[float, float]], holds: dict[str, bool]) -> bool:
    """Return whether a flight of which these conditions hold is foretold to be late."""
    return evidence["late"][0] + sum(evidence[n][not holds[n]] for n in CONDITIONS) > 0


if __name__ == "__main__":
    for name, (yes, no) in learned(sys.argv[1] if sys.argv[1:] else "queries.db").items():
        print(f"{name:10} {yes:+.2f} {no:+.2f}")
