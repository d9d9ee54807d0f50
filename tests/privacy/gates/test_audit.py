"""The walk of gates, audited: what one charge lets out, on batches with and without a record.

The engine's own walk is driven, batch by batch, over a memory without a disk. The neighbours differ
by a record in every batch, one more and one less in turn, which a common threshold hides least;
what is looked at follows from all answers that one run paid for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from streamdp.engine.gate import Gatekeeper, GateRunner
from streamdp.engine.job import EngineContext
from streamdp.gates.questions.growth import Growth
from streamdp.gates.run import ThresholdingGate
from streamdp.mechanisms.sparse_vector.thresholding import Thresholding
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.sources.windows import DAY, WindowSource
from streamdp.store.sqlite import SqliteStore
from streamdp.types import (
    Batch,
    CellCounts,
    CellQuery,
    Charge,
    Entropy,
    GateRun,
    GateVerdict,
    Grid,
    Json,
    Query,
    Run,
)
from tests.privacy.audit import Draw, epsilon_lower_bound
from tests.worlds import START, EventLog, HandClock

EPSILON = Fraction(2)
TESTS = 20


@dataclass
class MemoryGates:
    """Runs and answers in memory; `endless` forgets that a yes ends a run."""

    endless: bool = False
    current: GateRun | None = None
    words: list[tuple[int, bool]] = field(default_factory=list)
    armed: int = 0

    def open_run(self, gate: str) -> GateRun | None:
        return self.current

    def waits(self, gate: str) -> bool:
        return False

    def accepted(self, gate: str) -> int:
        return 0

    def arm(
        self, scope: str, gate: str, charge: Charge, terms: Json, hidden: Json, now: int
    ) -> GateRun:
        self.armed += 1
        self.current = GateRun(Run(self.armed, scope, gate, 1, 1), terms, hidden, 0, None)
        return self.current

    def use_test(self, run: Run, batch: Batch, now: int) -> int:
        assert self.current is not None
        self.current = replace(self.current, answered=self.current.answered + 1)
        return self.current.answered

    def answer(self, run: Run, answer: GateVerdict, now: int) -> None:
        self.words.append((run.seq, answer.accepted))
        if answer.accepted and not self.endless:
            self.current = None

    def tell(self, notices: Sequence[str], now: int) -> None:
        """Nobody is told."""


@dataclass
class Alternating:
    """So many records in a batch, and one more in every second."""

    records: int
    first: int

    def check(self, query: Query, batch: Batch) -> None:
        pass

    def answer(self, query: Query, batch: Batch) -> CellCounts:
        more = (int(batch.start or 0) // DAY + self.first) % 2
        return CellCounts(np.array([3]), np.array([self.records + more]))


def kind(tests: int) -> ThresholdingGate:
    """A gate that asks for fifty records."""
    question = Growth("records", Fraction(50), Fraction(2))
    run = Thresholding(EPSILON, Fraction(1, 2), horizon=tests)
    return ThresholdingGate(CellQuery("x", Grid(Fraction(1), 0, 9)), question, run)


def paid_by_one_charge(tests: int, first: int, *, endless: bool) -> Draw:
    """What all answers of the first run say: the last, and by how much every second said more."""
    source = WindowSource("s", START, DAY, START + tests * DAY)
    batches = list(source.batches(START + 300 * DAY))
    question = kind(tests)
    gate = GateRunner(
        name="gate",
        scope="s",
        source=source,
        backend=Alternating(50 + question.margin(1) * 4 // 5, first),
        kind=question,
        jobs=(),
        sinks=(),
        holds=(),
        manual=False,
        slot=1,
        horizon=tests + 1,
    )

    def draw() -> tuple[int, int]:
        memory = MemoryGates(endless)
        store = cast(SqliteStore, SimpleNamespace(gates=memory))
        around = EngineContext(store, OperatingSystemEntropy(), HandClock(), EventLog())
        keeper = Gatekeeper(around)
        for batch in batches:
            if keeper.ask(gate, batch, ()) and not endless:
                break
        words = [word for run, word in memory.words if run == 1]
        return len(words), sum(words[::2]) - sum(words[1::2])

    return draw


def pair(tests: int, *, endless: bool = False, epsilon: Fraction = EPSILON) -> tuple[Draw, Draw]:
    mine, other = (paid_by_one_charge(tests, first, endless=endless) for first in (0, 1))
    return mine, other


def rough(bits: int, loss: Fraction, entropy: Entropy) -> int:
    """The same law from floating-point numbers, forty times as fast: for mutants that need many."""
    return int(-math.log1p(-entropy.bits(53) / 2**53) * 2**bits / float(loss))


def test_the_answers_of_a_run_prove_no_more_than_its_charge() -> None:
    """From answers alone, the loss that can be proven stays below epsilon."""
    assert epsilon_lower_bound(pair(5), 600) <= EPSILON


@pytest.mark.long
def test_a_run_that_goes_on_after_a_yes_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit has power: let an acceptance not end its run, and the answers prove too much."""
    monkeypatch.setattr("streamdp.mechanisms.sparse_vector.above_threshold.one_sided", rough)
    assert epsilon_lower_bound(pair(TESTS), 1_000) <= EPSILON
    assert epsilon_lower_bound(pair(TESTS, endless=True), 1_500) > EPSILON


@pytest.mark.long
def test_a_long_audit_of_a_run() -> None:
    """With many draws the bound stays below the claim, and comes near some of it."""
    bound = epsilon_lower_bound(pair(5), 60_000)
    assert 0.1 < bound <= EPSILON
