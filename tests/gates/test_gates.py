"""What gates ask: scores of sensitivity one, and words that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.gates.questions.drift import Drift
from streamdp.gates.questions.growth import Growth
from streamdp.gates.questions.section import Around, Question
from streamdp.gates.questions.threshold import Threshold
from streamdp.gates.run import ThresholdingGate
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.mechanisms.sparse_vector.drift import Tolerance
from streamdp.mechanisms.sparse_vector.thresholding import Chance, Terms, Thresholding
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.types import CellCounts, CellQuery, Grid, Json, Past
from tests.worlds import ReplayedEntropy

GRID = Grid(Fraction(1), 0, 20)
DECILES = tuple(Fraction(i, 10) for i in range(1, 10))
QUESTIONS: dict[str, Question] = {
    "absolute": Drift(GRID, Around(absolute=Fraction(2)), DECILES),
    "relative": Drift(GRID, Around(relative=Fraction(1, 10)), DECILES[2:6]),
    "ranks": Drift(GRID, Around(ranks=Fraction(1, 8)), DECILES),
    "not released": Drift(GRID, Around(ranks=Fraction(1, 8)), (Fraction(1, 3),)),
    "above": Threshold(Tolerance(Fraction(9, 10), None, 7)),
    "below": Threshold(Tolerance(Fraction(1, 2), 7, None)),
    "records": Growth("records", Fraction(7), Fraction(3, 2)),
    "mode": Growth("mode", Fraction(7), Fraction(3, 2)),
    "quantile": Growth("quantile", Fraction(3), Fraction(3, 2), grid=GRID, quantile=Fraction(4, 5)),
    "sum": Growth("sum", Fraction(200), Fraction(3, 2), grid=Grid(Fraction(1, 2), -9, 20)),
}
PAST = Past(2, tuple({"quantile": float(q), "value": float(4 + 10 * q)} for q in DECILES))


def counts(values: list[int]) -> CellCounts:
    cells, numbers = np.unique(np.asarray(values, dtype=np.int64), return_counts=True)
    return CellCounts(cells, numbers.astype(np.int64))


def score(name: str, values: list[int]) -> Fraction:
    found = QUESTIONS[name].test(PAST, counts(values))
    assert isinstance(found, Fraction)
    return found


records = st.lists(st.integers(0, 20), max_size=60)


@pytest.mark.parametrize("name", QUESTIONS)
@settings(max_examples=60, deadline=None)
@given(values=records, another=st.integers(0, 20))
def test_a_record_moves_a_score_by_at_most_one(name: str, values: list[int], another: int) -> None:
    """On any batch, the empty one too."""
    assert abs(score(name, [*values, another]) - score(name, values)) <= 1


def test_scores_are_the_records_that_are_out_of_place() -> None:
    """By hand: a hundred records, half of them moved."""
    shifted = [4] * 50 + [20] * 50
    assert score("records", shifted) == 100 - 7 * Fraction(9, 4)
    assert score("mode", shifted) == 50 - 7 * Fraction(9, 4)
    assert score("above", shifted) == (90 - 50) / Fraction(9, 10)
    assert score("below", shifted) == 0
    assert score("quantile", shifted) == (80 - 50) / Fraction(4, 5)
    assert score("sum", shifted) == (50 * 4 + 50 * 20 - 2 * 200 * Fraction(9, 4)) / 20
    drifted = Drift(GRID, Around(absolute=Fraction(3)), (Fraction(3, 4),))
    past = Past(0, ({"quantile": 0.75, "value": 10.0},))
    assert drifted.test(past, counts(shifted)) == (75 - 50) / Fraction(3, 4)


def test_an_empty_batch_opens_no_gate() -> None:
    """Nothing is out of place where nothing is: no score is above zero."""
    assert all(score(name, []) <= 0 for name in QUESTIONS)


def test_words_are_sure_within_the_tolerance_and_beyond_the_margin() -> None:
    """A hundred runs of each: no word is wrong more often than beta allows, with much to spare."""
    run = Thresholding(Fraction(1), Fraction(1, 20), horizon=1)
    kind = ThresholdingGate(
        CellQuery("x", GRID), Growth("records", Fraction(1000), Fraction(2)), run
    )
    entropy = OperatingSystemEntropy()

    def yes(records: int) -> int:
        batch = CellCounts(np.array([3]), np.array([records]))
        return sum(
            kind.accepts(kind.start(entropy), 1, Past(0, ()), batch, entropy) for _ in range(100)
        )

    assert yes(1000) <= 15
    assert yes(1000 + kind.margin(1)) >= 85
    assert 15 < yes(1000 + kind.margin(1) // 2) < 85 or kind.margin(1) > 30


def test_a_drawn_drift_is_a_chance_that_follows_the_batch() -> None:
    """With a test epsilon the answer is a draw's: likely where the batch moved, rare where not."""
    drawn = Drift(GRID, Around(absolute=Fraction(3)), DECILES[4:5], epsilon=Fraction(1, 10))
    batches = [counts(list(range(low, low + 5)) * 200) for low in (7, 15)]
    chances = [drawn.test(PAST, batch) for batch in batches]
    assert all(isinstance(each, Chance) for each in chances)
    assert chances[0].success < 0.01  # type: ignore[union-attr]
    assert chances[1].success > 0.99  # type: ignore[union-attr]
    run = Thresholding(Fraction(1), horizon=10)
    kind = ThresholdingGate(CellQuery("x", GRID), drawn, run, (Terms(Fraction(1, 10)),))
    entropy = ReplayedEntropy()
    words = [kind.accepts(kind.start(entropy), 1, PAST, batch, entropy) for batch in batches]
    assert words == [False, True]


@dataclass(frozen=True)
class Sometimes:
    """A test that says yes seven times in ten, whatever the batch."""

    def describe(self) -> Json:
        return {"kind": "sometimes"}

    def test(self, past: Past, statistic: object) -> Chance:
        return Chance(0.7, 0.3)


@pytest.mark.parametrize("each_test", [False, True])
def test_the_level_follows_acceptances_or_the_tests_of_a_run(each_test: bool) -> None:
    """A test that is good enough at first is not at a later level, nor at the last for ever."""
    levels = (Fraction(1, 2), Fraction(9, 10), Fraction(3, 5))
    terms = tuple(Terms(Fraction(1, 2**12), level=level) for level in levels)
    run = Thresholding(Fraction(1), horizon=10)
    kind = ThresholdingGate(CellQuery("x", GRID), Sometimes(), run, terms, 1, each_test)
    entropy = OperatingSystemEntropy()

    def answer(number: int, accepted: int) -> bool:
        past = Past(accepted, ())
        return kind.accepts(kind.start(entropy), number, past, counts([1]), entropy) > 0

    by = [answer(1 + step, 0) if each_test else answer(1, step) for step in range(5)]
    assert by == [True, False, True, True, True]
    other = [answer(1, step) if each_test else answer(1 + step, 0) for step in range(5)]
    assert other == [True] * 5


def test_a_charge_names_the_question_and_hides_no_price() -> None:
    """The event of a run is its mechanism's, with the question beside it."""
    kind = ThresholdingGate(CellQuery("x", GRID), QUESTIONS["ranks"], Thresholding(Fraction(1, 3)))
    charge = kind.charge()
    assert charge.epsilon_nano == 333_333_334
    assert charge.event["question"]["ranks"] == "1/8"


def test_quantiles_close_to_each_other_are_not_mixed_up() -> None:
    """Each has the value that was released of it, however long its denominator is."""
    near = tuple(Fraction(i, 10**6) for i in (500_001, 500_003))
    rows = tuple({"quantile": float(q), "value": v} for q, v in zip(near, (4.0, 16.0), strict=True))
    drift = Drift(GRID, Around(absolute=Fraction(1)), near)
    batch = counts([4] * 500_002 + [16] * 499_998)
    assert drift.test(Past(1, rows), batch) == Fraction(-(10**6), 500_003)
    assert drift.test(Past(1, rows[:1]), batch) == 10**6


def test_quantiles_that_are_published_as_one_number_are_refused() -> None:
    """By the mechanism, whoever calls it."""
    third = Fraction(1, 3)
    with pytest.raises(ValueError, match="increase strictly"):
        QuantileTree((third, third + Fraction(1, 10**20)), Fraction(1), GRID)
