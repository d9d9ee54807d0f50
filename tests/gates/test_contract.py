"""What every test that a gate may put a batch to promises."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pytest

from streamdp import wiring
from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.gates.questions.count import Counts
from streamdp.gates.questions.error import RuleError
from streamdp.gates.questions.section import TESTS, Question
from streamdp.gates.run import ThresholdingGate
from streamdp.mechanisms.sparse_vector import above_threshold
from streamdp.types import CellCounts, Past, Row, Statistic, SumQuery, Sums, TableCounts, TableQuery
from tests.kinds.cases import STATISTICS, first_batches
from tests.privacy.gates.law import NO_ENTROPY, coarse, noise_law
from tests.worlds import ReplayedEntropy

CONFIG = """
store: {path: store.db}
privacy: {unit: UNIT, neighbours: NEIGHBOURS, caps: {batch: 9, lifetime: 90}}
sources:
  trips: {path: trips.parquet, batches: {column: at, every: 1d, start: 2024-01-01}}
releases:
  it: {source: trips, epsilon: 0.5, RELEASE}
sinks:
  file: {kind: jsonl, path: out.jsonl}
gates:
  gate: {GATE, epsilon: 1, horizon: 3, test: {TEST}}
"""

QUARTILES = "kind: quantiles, column: x, quantiles: quartiles, resolution: 1, bounds: [0, 3]"
HISTOGRAM = "kind: statistics, measures: {h: {histogram: c, values: [a, b], other: true}}"
RULES = (
    "kind: selection, among: {sql: 'x >= {t}', t: {from: 1, to: 2}}, score: {errors: y > 0},"
    " expected_rows: 9000"
)
EXPERTS = (
    "kind: experts, experts: {rules: {sql: 'x >= {t}', t: {from: 1, to: 2}}, label: y > 0},"
    " expected_rows: 9000"
)
SUMS = (
    "kind: selection, among: {conditions: {low: x < 2, high: x >= 2}},"
    " score: {sum: x, resolution: 1, bounds: [-1, 3]}, expected_rows: 9000"
)
ALONE = "source: trips, sinks: [file]"
CELLS = f"{ALONE}, column: x, resolution: 1, bounds: [0, 3]"
OF_JOB = "release: [it]"

CASES = {
    "drift": (QUARTILES, OF_JOB, "kind: drift, absolute: 1"),
    "drift in ranks": (QUARTILES, OF_JOB, "kind: drift, ranks: 1/8"),
    "threshold": (QUARTILES, CELLS, "kind: threshold, quantile: 0.9, above: 1"),
    "growth": (QUARTILES, CELLS, "kind: growth, start: 2, factor: 3/2"),
    "growth of the mode": (QUARTILES, CELLS, "kind: growth, start: 1, factor: 2, score: mode"),
    "growth of a quantile": (
        QUARTILES,
        OF_JOB,
        "kind: growth, start: 1, factor: 3/2, score: quantile, quantile: 3/4",
    ),
    "growth of a sum": (QUARTILES, OF_JOB, "kind: growth, start: 2, factor: 3/2, score: sum"),
    "growth of the best": (RULES, OF_JOB, "kind: growth, start: 2, factor: 3/2, score: best"),
    "growth of the best sum": (SUMS, OF_JOB, "kind: growth, start: 2, factor: 3/2, score: best"),
    "first rule": (RULES, OF_JOB, "kind: first, correct: 2/3"),
    "count above": (HISTOGRAM, OF_JOB, "kind: count, measure: h, above: 2"),
    "count below": (HISTOGRAM, OF_JOB, "kind: count, measure: h, cells: [b], below: 200"),
    "count off": (HISTOGRAM, OF_JOB, "kind: count, measure: h, absolute: 1"),
    "count off by a share": (HISTOGRAM, OF_JOB, "kind: count, measure: h, relative: 1/3"),
    "error of a rule": (RULES, OF_JOB, "kind: error, above: 1/5"),
    "error of a rule above its average": (EXPERTS, OF_JOB, "kind: error, more: 1/10"),
    "count of records": (QUARTILES, ALONE, "kind: count, where: x > 1, above: 2"),
}
"""Every test that is registered, in every form: release, gate and test."""

QUARTILE_ROWS: list[Row] = [
    {"quantile": q, "value": v} for q, v in ((0.25, 1.0), (0.5, 1.0), (0.75, 2.0))
]
COUNT_ROWS: list[Row] = [
    {"measure": m, "cell": c, "value": v}
    for m, c, v in (("h", "a", 2.0), ("h", "b", -1.5), ("other", "a", 9.0))
]
RULE_ROWS: list[Row] = [
    {"place": 2, "chosen": 0, "t": 2.0, "average_loss": 0.5},
    {"place": 1, "chosen": 1, "t": 1.0, "average_loss": 0.25},
]
PASTS = {
    "nothing": Past(0, ()),
    "a release": Past(2, (*QUARTILE_ROWS, *COUNT_ROWS, *RULE_ROWS)),
}
"""What may have been released before; rows of another kind are as good as none."""

every = pytest.mark.parametrize("case", CASES)


def gate(
    folder: Path, case: str, unit: str = "trip", neighbours: str = "add-remove"
) -> ThresholdingGate:
    """The gate of a case, as the configuration makes it."""
    release, gate, test = CASES[case]
    text = CONFIG.replace("UNIT", unit).replace("NEIGHBOURS", neighbours)
    text = text.replace("RELEASE", release).replace("GATE", gate).replace("TEST", test)
    (folder / "config.yaml").write_text(text)
    return wiring.gate_kind("gate", load(folder / "config.yaml"))


def counted(kind: ThresholdingGate, records: tuple[int, ...]) -> Statistic:
    """What a backend answers of records in cells 0 to 3; a table has as many as it lists."""
    found, counts = np.unique(np.asarray(records, dtype=np.int64), return_counts=True)
    if isinstance(kind.asked, SumQuery):
        terms = kind.asked.terms
        half = 4 // len(terms)
        places = range(len(terms))
        return Sums(tuple(sum(r for r in records if r // half == place) for place in places))
    if not isinstance(kind.asked, TableQuery):
        return CellCounts(found, counts.astype(np.int64))
    (marginal,) = kind.asked.marginals
    shape = kind.asked.shape(marginal)
    table = np.zeros(shape, dtype=np.int64).reshape(-1)
    for cell, count in zip(found.tolist(), counts.tolist(), strict=True):
        table[cell * len(table) // 4 if len(table) > 4 else min(cell, len(table) - 1)] += count
    return TableCounts((table.reshape(shape),))


def neighbours(rows: int, substitute: bool, most: int) -> Iterator[tuple[Any, Any]]:
    """All batches of up to `most` records in four cells, with up to `rows` more, or exchanged."""
    for size in range(most + 1):
        for rest in combinations_with_replacement(range(4), size):
            for mine in combinations_with_replacement(range(4), rows):
                others = combinations_with_replacement(range(4), rows) if substitute else [()]
                for other in others:
                    yield (*rest, *mine), (*rest, *other)


def scores(question: Question, past: Past, statistic: Statistic) -> tuple[Fraction, ...]:
    found = question.test(past, statistic)
    found = found if isinstance(found, tuple) else (found,)
    assert all(isinstance(each, Fraction) for each in found), "draws have a contract of their own"
    return cast("tuple[Fraction, ...]", found)


def largest_move(kind: ThresholdingGate, rows: int, substitute: bool, most: int) -> Fraction:
    """The most that a score differs between neighbours, over every past."""
    return max(
        abs(one - two)
        for past in PASTS.values()
        for mine, other in neighbours(rows, substitute, most)
        for one, two in zip(
            scores(kind.question, past, counted(kind, mine)),
            scores(kind.question, past, counted(kind, other)),
            strict=True,
        )
    )


def test_every_test_is_here() -> None:
    """One that is registered is held to what follows; custom tests are another package's."""
    kinds = {test.split(",")[0].removeprefix("kind: ") for _, _, test in CASES.values()}
    assert kinds | {"custom"} == set(TESTS.names())


@pytest.mark.thinned(10)
@every
@pytest.mark.parametrize("neighbour", ["add-remove", "substitute"])
@pytest.mark.parametrize("rows", [1, 2])
def test_neighbours_move_a_score_by_at_most_one(
    tmp_path: Path, case: str, rows: int, neighbour: str
) -> None:
    """Exhaustively, for records and for units of two; and a record more is seen."""
    unit = "trip" if rows == 1 else "{name: person, column: who, rows: 2}"
    kind = gate(tmp_path, case, unit, neighbour)
    moved = largest_move(kind, rows, neighbour == "substitute", 4 - rows)
    assert moved <= 1
    assert moved >= Fraction(1, 3) or neighbour == "substitute"


@pytest.mark.thinned(3)
@every
def test_the_law_of_a_run_loses_no_more_than_its_price(tmp_path: Path, case: str) -> None:
    """Integrated from production's own noise: two tests of batches that differ, one each way."""
    kind = gate(tmp_path, case)
    past, batches = PASTS["a release"], list(neighbours(1, substitute=False, most=2))
    with coarse(6):
        largest = max(
            loss(kind, past, [(mine, other), (other, mine)])
            for mine, other in (*batches[:12], *batches[-12:])
        )
        assert largest <= 1.0 + 1e-6


def loss(kind: ThresholdingGate, past: Past, runs: list[tuple[Any, Any]]) -> float:
    """Largest log-ratio, over epsilon, of when a run accepts and what."""
    one, two = ([counted(kind, pair[side]) for pair in runs] for side in (0, 1))
    return _loss_between(kind, law(kind, past, one), law(kind, past, two))


def _loss_between(kind: ThresholdingGate, mine: Any, other: Any) -> float:
    seen = np.minimum(mine, other) > 1e-14
    return float(np.abs(np.log(mine[seen] / other[seen])).max()) / float(kind.thresholding.epsilon)


def law(kind: ThresholdingGate, past: Past, batches: list[Statistic]) -> Any:
    """P(each answer at test 1), ..., P(no yes), of production's `accepts`."""
    rho = noise_law(lambda: int(kind.start(NO_ENTROPY)["rho"]))
    noise = kind.thresholding.noise
    nu = noise_law(lambda: noise.gap({"rho": 0}, NO_ENTROPY) - noise.offset())
    upper = np.append(np.cumsum(nu[::-1])[::-1], 0.0)
    alive, found = rho.copy(), []
    for number, batch in enumerate(batches, start=1):
        accept = []
        for place in range(kind.configurations):
            least = _least_gap(kind, number, past, batch, place) + np.arange(len(rho))
            accept.append(upper[np.clip(least, 0, len(nu))])
        answers: dict[int, Any] = {}
        for bits in product((False, True), repeat=kind.configurations):
            said = iter(bits)
            with patch.object(ThresholdingGate, "_accepts", lambda *_, said=said: next(said)):
                answer = kind.accepts({}, number, past, batch, NO_ENTROPY)
            chances = [one if bit else 1.0 - one for one, bit in zip(accept, bits, strict=True)]
            answers[answer] = answers.get(answer, 0.0) + np.prod(chances, axis=0)
        found += [
            float(alive @ answers.get(each, 0.0 * rho)) for each in range(1, 2**kind.configurations)
        ]
        alive = alive * answers[0]
    return np.array([*found, float(alive.sum())])


def _least_gap(
    kind: ThresholdingGate, number: int, past: Past, batch: Statistic, place: int
) -> int:
    """Least nu - rho from which production accepts the test at a place, by asking it."""
    low, high, before = -(1 << 24), 1 << 24, (number - 1) * kind.configurations
    test = scores(kind.question, past, batch)[place]

    def accepts(gap: int) -> bool:
        hidden = {"rho": max(-gap, 0)}
        with patch.object(above_threshold, "one_sided", lambda *_: max(gap, 0)):
            return kind._accepts(hidden, before + place + 1, past, test, NO_ENTROPY)

    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if accepts(middle) else (middle, high)
    return high


@every
@pytest.mark.parametrize("past", PASTS)
@pytest.mark.parametrize("statistic", STATISTICS)
def test_it_is_total(tmp_path: Path, case: str, past: str, statistic: str) -> None:
    """An answer for every batch and every past, and a question that is asked of each batch."""
    kind = gate(tmp_path, case, "{name: person, column: who, rows: 2}")
    configuration = load(tmp_path / "config.yaml")
    (batch,) = first_batches(configuration, 1)
    query = kind.query(batch)
    assert query.bound is not None
    assert batch.key in query.bound.key
    entropy = ReplayedEntropy()
    found = kind.accepts(kind.start(entropy), 1, PASTS[past], STATISTICS[statistic](query), entropy)
    assert found in range(1 + kind.configurations)


@every
def test_a_run_costs_what_is_configured_and_names_its_question(tmp_path: Path, case: str) -> None:
    """Whatever is asked, in units or not; the question is public JSON."""
    kind = gate(tmp_path, case)
    charge = kind.charge()
    assert charge.epsilon_nano == 10**9
    assert json.loads(json.dumps(charge.event))["question"] == kind.question.describe()
    assert charge == gate(tmp_path, case, "{name: person, column: who, rows: 2}").charge()


def _spread(self: Counts, past: Past, statistic: TableCounts) -> Fraction:
    """Excess of the counts over their mean: each record moves all cells."""
    counts = statistic.marginals[0].reshape(-1).tolist()
    return sum((abs(Fraction(count * len(counts) - sum(counts))) for count in counts), Fraction(0))


def _of_this_batch(self: Counts, past: Past, statistic: TableCounts) -> Fraction:
    """The tolerance shrinks with the batch instead of with the release."""
    counts = statistic.marginals[0].reshape(-1).tolist()
    return max(count + Fraction(1, 3) * count for count in counts) - 2


def _not_divided(self: Counts, past: Past, statistic: TableCounts) -> Fraction:
    """Units of two records, priced as one."""
    return COUNTED(replace(self, rows_per_unit=1), past, statistic)


COUNTED = Counts.test


@pytest.mark.parametrize(("mutant", "rows"), [(_spread, 1), (_of_this_batch, 1), (_not_divided, 2)])
def test_mistakes_in_a_count_are_caught(
    tmp_path: Path, mutant: Callable[..., Fraction], rows: int
) -> None:
    """By the same enumeration."""
    unit = "trip" if rows == 1 else "{name: person, column: who, rows: 2}"
    kind = gate(tmp_path, "count above", unit)
    with patch.object(Counts, "test", mutant):
        assert largest_move(kind, rows, substitute=False, most=2) > 1


def _names_all(self: ThresholdingGate, *of_batch: Any) -> int:
    """Every accepted rule is named, and not the first: a yes is paid for once."""
    hidden, number, past, statistic, entropy = of_batch
    tests = scores(self.question, past, statistic)
    bits = [self._accepts(hidden, number, past, test, entropy) for test in tests]
    return sum(2**place for place, bit in enumerate(bits) if bit)


def _names_the_best(self: ThresholdingGate, *of_batch: Any) -> int:
    """Of the accepted rules that of the best score is named, which is private."""
    hidden, number, past, statistic, entropy = of_batch
    tests = scores(self.question, past, statistic)
    bits = [self._accepts(hidden, number, past, test, entropy) for test in tests]
    accepted = [place for place, bit in enumerate(bits) if bit]
    return max(accepted, key=lambda place: tests[place]) + 1 if accepted else 0


def _half_right(kind: ThresholdingGate, records: int, more: int) -> Statistic:
    """So many records with the label, which all rules match, and more without that half do."""
    assert isinstance(kind.asked, TableQuery)
    table = np.zeros(kind.asked.shape(kind.asked.marginals[0]), dtype=np.int64)
    table[1, -2] = records  # the last cell is of those without a value
    table[0, 4] = more
    return TableCounts((table,))


def _loss_of(kind: ThresholdingGate, past: Past, mine: Statistic, other: Statistic) -> float:
    return _loss_between(kind, law(kind, past, [mine]), law(kind, past, [other]))


@pytest.mark.parametrize("mutant", [_names_all, _names_the_best])
def test_mistakes_in_the_first_of_several_are_caught(
    tmp_path: Path, mutant: Callable[..., int]
) -> None:
    """By the same law, of eight rules; production's is right on the same batches."""
    eight = (RULES.replace("to: 2", "to: 8"), OF_JOB, "kind: first, correct: 1/2")
    with patch.dict(CASES, {"first of eight": eight}):
        kind = gate(tmp_path, "first of eight")
    past, worst = PASTS["a release"], [0.0, 0.0]
    with coarse(6):
        for records in (40, 80, 100):
            batches = [_half_right(kind, records, more) for more in (0, 1)]
            worst[0] = max(worst[0], _loss_of(kind, past, *batches))
            with patch.object(ThresholdingGate, "accepts", mutant):
                worst[1] = max(worst[1], _loss_of(kind, past, *batches))
    assert worst[0] <= 1.0 + 1e-6

    assert worst[1] > 1.0 + 1e-3


def _wrong_either_way(self: RuleError, past: Past, statistic: TableCounts) -> Fraction:
    """Errors minus the right ones: a record moves it by two where the share is not taken off."""
    errors, records = self.rules.errors(statistic, 0)
    return (Fraction(errors - (records - errors)) - Fraction(1, 5) * records) / self.rows_per_unit


def _of_all_rules(self: RuleError, past: Past, statistic: TableCounts) -> Fraction:
    """Errors of every rule together: one record is an error of each."""
    errors = [self.rules.errors(statistic, number)[0] for number in range(2)]
    return Fraction(sum(errors)) / self.rows_per_unit


def _rule_not_divided(self: RuleError, past: Past, statistic: TableCounts) -> Fraction:
    """Units of two records, priced as one."""
    return OF_RULE(replace(self, rows_per_unit=1), past, statistic)


OF_RULE = RuleError.test


@pytest.mark.parametrize(
    ("mutant", "rows"), [(_wrong_either_way, 1), (_of_all_rules, 1), (_rule_not_divided, 2)]
)
def test_mistakes_in_the_error_of_a_rule_are_caught(
    tmp_path: Path, mutant: Callable[..., Fraction], rows: int
) -> None:
    """By the same enumeration."""
    unit = "trip" if rows == 1 else "{name: person, column: who, rows: 2}"
    kind = gate(tmp_path, "error of a rule", unit)
    with patch.object(RuleError, "test", mutant):
        assert largest_move(kind, rows, substitute=False, most=2) > 1


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ((RULES.replace("{errors: y > 0}", "count"), OF_JOB, "kind: error, above: 1/5"), "errors"),
        ((RULES, OF_JOB, "kind: error, more: 1/5"), "no average loss"),
        ((RULES, OF_JOB, "kind: error"), "one of above and more"),
        ((RULES, OF_JOB, "kind: error, above: 2"), "between 0 and 1"),
        ((RULES, ALONE, "kind: error, above: 1/5"), "name a job of rules"),
        ((QUARTILES, OF_JOB, "kind: error, above: 1/5"), "cannot read releases"),
    ],
)
def test_an_error_needs_a_rule(tmp_path: Path, body: tuple[str, str, str], what: str) -> None:
    """And a share that there can be."""
    with patch.dict(CASES, {"refused": body}), pytest.raises(ConfigurationError) as refusal:
        gate(tmp_path, "refused")
    assert what in str(refusal.value)
