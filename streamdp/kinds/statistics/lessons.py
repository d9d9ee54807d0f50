"""What a release of statistics has learned: levels, how much series move, and clips of sums.

From releases, learned states and public facts alone.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from streamdp.kinds.statistics.measures.moments import MomentOf
from streamdp.kinds.statistics.measures.series_filter import DRIFTS, TRANSIENTS, WEEKDAYS
from streamdp.types import History, Json, Lesson, Row

if TYPE_CHECKING:
    from streamdp.kinds.statistics.kind import Statistics

MOST = 60
"""Series whose levels are shown."""


def lessons(kind: Statistics, history: History, weekday: int | None) -> Iterator[Lesson]:
    """Return what past releases taught a release of statistics, and what follows for a batch.

    Args:
        kind: The release.
        history: Of it.
        weekday: Of the batch, 0 to 6; None if it has none.
    """
    found = [
        (measure.name, part, each)
        for measure in kind.measures
        for part, each in _filters(history.state.get(measure.name))
    ]
    yield _clips(kind, history)
    levels = [
        _level(name, part, key, numbers, weekday)
        for name, part, each in found
        for key, numbers in each["series"].items()
    ]
    yield Lesson(
        "What is expected of this batch",
        "level: of the series, freed of noise as far as past releases allow. weekday adds: what"
        " batches of this weekday differ by. deviation: of the level.",
        tuple(levels[:MOST]),
    )
    yield Lesson(
        "How much series move",
        "Each model is a guess of how a series changes: lasting changes from batch to batch"
        " (drift) and changes of one batch alone (transient), as variances in units of a base."
        " Models gain weight where they foretold releases; the heaviest are shown.",
        tuple(row for name, part, each in found for row in _models(name, part, each["weights"])),
    )


def _filters(state: Json) -> Iterator[tuple[str, Json]]:
    """The filters in the state of a measure, and what each follows."""
    if not isinstance(state, dict):
        return
    if isinstance(state.get("series"), dict) and isinstance(state.get("weights"), list):
        yield "value", state
        return
    for name, each in state.items():
        for _, found in _filters(each):
            yield "value" if name == "series" else name, found


def _clips(kind: Statistics, history: History) -> Lesson:
    rows: list[Row] = []
    for measure in kind.measures:
        if not isinstance(measure, MomentOf):
            continue
        state = history.state.get(measure.name)
        clip = measure.clip(state)
        cells = clip.grid(measure.grid)
        rows.append(
            {
                "measure": measure.name,
                "column": measure.column,
                "from": measure.grid.value(cells.lower),
                "to": measure.grid.value(cells.upper),
                "why": "the configured guess: nothing was released before"
                if not state
                else "as far from the middle as released tables of distances and the noise of a"
                " sum make best",
            }
        )
    return Lesson(
        "Where the next sums are clipped",
        "Values beyond these ends count as the ends. A wide clip costs noise, a narrow one leaves"
        " values out.",
        tuple(rows),
    )


def _level(name: str, part: str, key: str, numbers: list[float], weekday: int | None) -> Row:
    offset = 0.0 if weekday is None else numbers[2 : 2 + WEEKDAYS][weekday]
    return {
        "measure": name,
        "of": part,
        "series": _name(key),
        "expected": _short(numbers[0] + offset),
        "level": _short(numbers[0]),
        "weekday adds": _short(offset),
        "deviation": _short(max(numbers[1], 0.0) ** 0.5),
    }


def _models(name: str, part: str, log_weights: list[float]) -> list[Row]:
    models = list(itertools.product(TRANSIENTS, DRIFTS))
    if len(log_weights) != len(models):
        return []
    weights = np.exp(np.array(log_weights) - max(log_weights))
    weights /= weights.sum()
    return [
        {
            "measure": name,
            "of": part,
            "drift": models[place][1],
            "transient": models[place][0],
            "weight": round(float(weights[place]), 3),
        }
        for place in np.argsort(-weights)[:3].tolist()
    ]


def _name(key: str) -> str:
    """The group and cell that a series is of, as they are written in its key."""
    try:
        parts = json.loads(key)
    except ValueError:
        return key
    flat = [each if isinstance(each, list) else [each] for each in parts]
    return ", ".join(str(each) for some in flat for each in some) or "all"


def _short(number: float) -> float:
    return float(f"{number:.5g}")
