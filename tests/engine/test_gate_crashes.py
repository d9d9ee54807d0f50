"""A gate's process dies at every write, read and draw: nothing is forgotten, nothing is free."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import pytest

from streamdp.engine.gate import GateRunner
from streamdp.gates.questions.growth import Growth
from streamdp.gates.run import ThresholdingGate
from streamdp.mechanisms.sparse_vector.thresholding import Thresholding
from streamdp.store.database import connect_to_read
from streamdp.store.sqlite import SqliteStore
from streamdp.types import CellQuery
from tests.children import in_child
from tests.engine.test_gate import CAPS, gate_of
from tests.invariants import gate_violations
from tests.worlds import MemoryBackend, World, quantiles_kind

DIED = 9


def gate(world: World) -> GateRunner:
    """Rejects the second and third batch, accepts the fourth: they hold 20, 20, 20, 200 records."""
    last = [batch.key for batch in world.source.batches(world.clock.now())][-1]
    world.backend.values = {**world.backend.values, last: [50] * 200}
    question = Growth("records", Fraction(100), Fraction(2))
    run = Thresholding(Fraction(3), horizon=10)
    kind = ThresholdingGate(CellQuery("x", quantiles_kind().grid), question, run)
    return gate_of(world, kind, (world.job(),))


def dying(step: int, *, after: bool) -> Callable[[World], None]:
    """Work that ends the process at one of its steps, before or after it is done."""
    steps = iter(range(10_000))

    def die(here: bool) -> None:
        if here:
            os._exit(DIED)

    real_transaction, real_counts = SqliteStore.transaction, MemoryBackend.answer
    real_draw = ThresholdingGate.accepts

    @contextmanager
    def transaction(self: SqliteStore) -> Iterator[None]:
        this = next(steps)
        die(this == step and not after)
        with real_transaction(self):
            yield
        die(this == step and after)

    def counts(self: MemoryBackend, *arguments: object) -> object:
        die(next(steps) == step)
        return real_counts(self, *arguments)  # type: ignore[arg-type]

    def draw(self: ThresholdingGate, *arguments: object) -> bool:
        accepted = bool(real_draw(self, *arguments))  # type: ignore[arg-type]
        die(next(steps) == step)
        return accepted

    def work(world: World) -> None:
        with (
            patch.object(SqliteStore, "transaction", transaction),
            patch.object(MemoryBackend, "answer", counts),
            patch.object(ThresholdingGate, "accepts", draw),
        ):
            world.open()
            world.runner.round([gate(world)])

    return work


@pytest.mark.thinned(2)
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_every_step(tmp_path: Path, after: bool) -> None:
    """Before and after each: every batch ends with one word, and one more run is paid at most.

    A test whose draw may have begun is lost with its run; any other death costs the gate nothing.
    """
    code, step, lost = DIED, 0, 0
    while code == DIED:
        folder = tmp_path / str(step)
        folder.mkdir()
        world = World(folder, days=4, caps=CAPS)
        world.store.close()
        work = dying(step, after=after)
        ending = in_child(lambda work=work, world=world: work(world))  # type: ignore[misc]
        ending.require(0, DIED)
        code = ending.code
        between = _state(world)
        world.entropy.seed = "the next process"
        world.open()
        world.runner.round([gate(world)])
        world.store.close()
        found = _state(world)
        assert gate_violations(world.path, jobs=1) == [], step
        assert found["answers"] == "nny", step
        assert found["releases"] == 2, step
        assert found["runs"] == 1 + bool(between["asked"]), step
        lost += bool(between["asked"])
        step += 1
    assert step > 20
    assert lost >= 6


def _state(world: World) -> dict[str, object]:
    database = connect_to_read(world.path)

    def every(sql: str) -> list[object]:
        return [row[0] for row in database.execute(sql)]

    return {
        "answers": "".join(
            "ny"[int(str(each))]
            for each in every("SELECT accepted FROM gate_answer ORDER BY batch")
        ),
        "asked": every("SELECT asked FROM gate_run WHERE asked NOT NULL"),
        "runs": len(every("SELECT run FROM gate_run")),
        "releases": len(every("SELECT id FROM release")),
    }
