"""How many releases it takes until errors are what they are in the end.

    python -m tests.benchmarks.streams.recovery [--json] [--quick]

Of the streams with an event: a shift of level, the end of a season, a strange day, a wrong guess.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from streamdp.types import FloatArray
from tests.benchmarks.report import Row, main
from tests.benchmarks.streams.contenders import LEARNING, OURS
from tests.benchmarks.streams.settings import settings
from tests.benchmarks.streams.trials import measured

WITHIN = 1.2
"""Recovered: at most this many times the stable error."""

SEEDS = 5

WINDOW = 5
"""Releases over which an error is averaged, and over seeds and quantiles: one alone is chance."""


def releases_to_recover(errors: list[FloatArray], event: int) -> int | None:
    """Releases after the event until the mean of the next five is within 20 % of the stable error.

    Args:
        errors: Of each seed, shape (batches, m).
        event: Index of the first release after it.

    Returns:
        None if the last quarter, which is the stable part, has begun.
    """
    course = np.mean([each.mean(axis=1) for each in errors], axis=0)
    late = len(course) - len(course) // 4
    stable = float(course[late:].mean())
    for start in range(event, late):
        if course[start : start + WINDOW].mean() <= WITHIN * stable:
            return start - event
    return None


def rows(quick: bool) -> Iterable[Row]:
    """One row a stream with an event and a learner."""
    names = [f"{name}/{OURS}" for name in (*LEARNING, "online-gradient")]
    seeds = dict.fromkeys(names, SEEDS)
    for setting in settings():
        if setting.event is None:
            continue
        for name, errors in measured(setting, names, quick, seeds).items():
            yield {
                "stream": setting.name,
                "epsilon": float(setting.epsilon),
                "who": name.removesuffix(f"/{OURS}"),
                "releases_to_recover": releases_to_recover(
                    errors, int(setting.event * len(errors[0]))
                ),
            }


if __name__ == "__main__":
    main("Releases until the error is within 20 % of its stable value", rows)
