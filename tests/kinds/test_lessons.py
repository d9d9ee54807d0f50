"""Every kind shows what it has learned, whatever its batches held."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from streamdp import wiring
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.types import Explains, History, Step
from tests.kinds.cases import CASES, all_equal, configured, empty, first_batches, huge


@pytest.mark.parametrize(("name", "body"), CASES)
def test_lessons_follow_from_states_of_the_store(tmp_path: Path, name: str, body: str) -> None:
    """Tables are rows of texts and finite numbers, with the same columns, and name no secret."""
    configuration = configured(tmp_path, name, body)
    kind, entropy = wiring.release_kind(configuration, "it"), OperatingSystemEntropy()
    assert isinstance(kind, Explains)
    state, steps = kind.init(), list[Step]()
    batches = first_batches(configuration, 4)
    for batch, statistic in zip(batches, (huge, empty, all_equal), strict=False):
        plan = kind.plan(state, batch)
        outcome = kind.draw(plan, statistic(plan.query), entropy)
        after = json.loads(json.dumps(kind.learn(state, plan, outcome)))
        steps.append(Step(batch, state, kind.publish(after, outcome).rows))
        state = after
    for history in (
        History((), kind.init(), batches[0]),
        History(tuple(steps[:1]), steps[1].before, batches[1], steps[1].rows),
        History(tuple(steps), state, batches[3]),
    ):
        for lesson in kind.lessons(history):
            assert lesson.title
            assert lesson.about.endswith(".")
            for row in lesson.rows:
                assert row
                for value in row.values():
                    assert isinstance(value, int | float | str)
                    assert not isinstance(value, float) or math.isfinite(value)
    assert any(lesson.rows for lesson in kind.lessons(history))
