"""The suite is what its rule says."""

import json
import tomllib

import numpy as np
import pytest

from tests.benchmarks.report import Row
from tests.benchmarks.streams.settings import Setting, final, settings
from tests.benchmarks.streams.stored import FOLDER
from tests.benchmarks.streams.summary import RECORDED, summary


@pytest.mark.parametrize("setting", final(), ids=lambda setting: setting.name)
def test_final_streams_keep_the_rule(setting: Setting) -> None:
    """At least 80 batches of 30 records, at most 200, and within the grid."""
    stream = setting.make(0, None)
    assert 80 <= len(stream.counts) <= setting.length
    assert np.median([each.counts.sum() for each in stream.counts]) >= 30
    assert all(each.cells.min() >= setting.grid.lower for each in stream.counts)
    assert all(each.cells.max() <= setting.grid.upper for each in stream.counts)
    assert 0.02 <= setting.epsilon <= 4


def test_every_stored_stream_has_a_source_and_a_licence() -> None:
    """And no stream is in both parts."""
    tables = [
        tomllib.loads((FOLDER / f"{part}.toml").read_text()) for part in ("development", "final")
    ]
    assert not tables[0].keys() & tables[1].keys()
    assert all(row["source"] and row["licence"] for table in tables for row in table.values())


def test_every_stream_has_a_recorded_figure() -> None:
    """Of each learner, average and largest."""
    recorded = json.loads(RECORDED.read_text())
    assert {each.key for each in (*settings(), *final())} == recorded.keys()


def test_the_summary_is_geometric() -> None:
    """Of two streams, and the larger ratio beside it."""
    first: Row = {
        "part": "final",
        "who": "mixture",
        "sharpness": "ours",
        "average_error": 0.01,
        "largest_error": 0.02,
        "loss_to_best_plan": 0.5,
        "to_c7b2b41": 0.25,
    }
    second: Row = {**first, "average_error": 0.04, "to_c7b2b41": 1.0, "loss_to_best_plan": 2.0}
    other: Row = {**first, "sharpness": "textbook", "average_error": 9.0}
    mean, largest = list(summary([first, second, other]))[:2]
    assert mean["average_error"] == 0.02
    assert (mean["to_c7b2b41"], largest["to_c7b2b41"]) == (0.5, 1.0)
    assert (mean["loss_to_best_plan"], largest["loss_to_best_plan"]) == (1.0, 2.0)
