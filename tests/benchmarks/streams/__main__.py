"""Learning over streams: average and largest rank error of the last three quarters.

Run it: ``python -m tests.benchmarks.streams [--json] [--quick]``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np

from streamdp.types import FloatArray
from tests.benchmarks.report import Row, main
from tests.benchmarks.streams import sequences
from tests.benchmarks.streams.contenders import CONTENDERS, trees
from tests.benchmarks.streams.replay import oracle, replay
from tests.benchmarks.streams.sequences import Stream, flights, moving, synthetic

SETTINGS: tuple[tuple[Callable[[int], Stream], str], ...] = (
    (lambda seed: flights("air_time"), "0.1"),
    (lambda seed: flights("air_time"), "0.3"),
    (lambda seed: flights("arrival_delay"), "0.1"),
    (synthetic, "1"),
    (synthetic, "3"),
    (lambda seed: moving("level-shift", seed, sequences.level_shift), "0.2"),
    (lambda seed: moving("wrong-guess", seed, sequences.wrong_guess), "0.5"),
    (lambda seed: moving("random-walk", seed, sequences.random_walk), "0.2"),
    (lambda seed: moving("seasonal", seed, sequences.seasonal), "0.2"),
    (lambda seed: moving("independent", seed, sequences.independent), "0.2"),
)


def rows(quick: bool) -> Iterable[Row]:
    """One row a stream, epsilon, learner and sharpness, with the floor beside it."""
    for make, epsilon in SETTINGS:
        streams = [make(seed) for seed in range(1 if quick else 5)]
        if quick:
            streams = [stream.take(40) for stream in streams]
        floor, _ = _figures([_floor(*each, Fraction(epsilon)) for each in _numbered(streams)])
        for who, sharpness in itertools.product(CONTENDERS, ("textbook", "ours")):
            if quick and sharpness == "textbook" and who != "static":
                continue
            errors = [
                _errors(*each, Fraction(epsilon), who, sharpness) for each in _numbered(streams)
            ]
            average, largest = _figures(errors)
            yield {
                "stream": streams[0].name,
                "epsilon": float(epsilon),
                "who": who,
                "sharpness": sharpness,
                "average_error": round(average, 4),
                "largest_error": round(largest, 4),
                "oracle": round(floor, 4),
            }


def _numbered(streams: list[Stream]) -> list[tuple[int, Stream]]:
    return list(enumerate(streams))


def _errors(seed: int, stream: Stream, epsilon: Fraction, who: str, sharpness: str) -> FloatArray:
    tree = trees(stream, epsilon)[sharpness]
    return replay(stream, tree, CONTENDERS[who](stream, tree), seed)


def _floor(seed: int, stream: Stream, epsilon: Fraction) -> FloatArray:
    return oracle(stream, trees(stream, epsilon)["ours"], seed)


def _figures(errors: list[FloatArray]) -> tuple[float, float]:
    """Means over seeds and the last three quarters of the days: of all quantiles, of the worst."""
    late = [each[len(each) // 4 :] for each in errors]
    return (
        float(np.mean([each.mean() for each in late])),
        float(np.mean([each.max(axis=1).mean() for each in late])),
    )


if __name__ == "__main__":
    main("Learning over streams: rank error of the last three quarters", rows)
