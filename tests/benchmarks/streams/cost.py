"""What learning costs in processor time, as a ratio to the draw of the same run."""

from __future__ import annotations

import time

import numpy as np

from streamdp.simulation.comparison import chance
from streamdp.types import FloatArray, Json
from tests.benchmarks.report import Row
from tests.benchmarks.streams.contenders import OURS, Contenders
from tests.benchmarks.streams.settings import Setting


def cost(setting: Setting, length: int) -> Row:
    """Milliseconds a release: everything that the default learner adds, and a draw without it.

    What it adds is plan, draw and learn with the mixture less the same with a static prior, batch
    after batch, so that whatever else the machine does falls on both.
    """
    stream, contenders = setting.make(0, length), Contenders(setting)
    kinds = {
        name: contenders.kind(f"{name}/{OURS}", setting.epsilon, stream)
        for name in ("mixture", "static")
    }
    states: dict[str, Json] = {name: kind.init() for name, kind in kinds.items()}
    spent: dict[str, list[FloatArray]] = {name: [] for name in kinds}
    entropy = chance(0)
    for batch, counts in zip(stream.batches, stream.counts, strict=True):
        for name, kind in kinds.items():
            moments = [time.process_time()]
            plan = kind.plan(states[name], batch)
            moments.append(time.process_time())
            outcome = kind.draw(plan, counts, entropy)
            moments.append(time.process_time())
            states[name] = kind.learn(states[name], plan, outcome)
            moments.append(time.process_time())
            spent[name].append(np.diff(moments) * 1000.0)
    learned, fixed = (np.median(np.array(spent[name]), axis=0) for name in ("mixture", "static"))
    added = float(learned.sum() - fixed.sum())
    return {
        "stream": setting.name,
        "epsilon": float(setting.epsilon),
        "who": "cost of the mixture",
        "learning_ms": round(added, 2),
        "learning_over_draw": round(added / float(fixed[1]), 2),
    }
