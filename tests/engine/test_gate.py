"""The walk of a gate: what it asks, what it pays, what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from streamdp.engine.gate import GateRunner
from streamdp.engine.job import Job
from streamdp.gates.questions.drift import Drift
from streamdp.gates.questions.growth import Growth
from streamdp.gates.questions.section import Around
from streamdp.gates.run import ThresholdingGate
from streamdp.mechanisms.sparse_vector.thresholding import Thresholding
from streamdp.privacy.filters import Caps
from streamdp.sources.windows import DAY
from streamdp.store.gates import rearm
from streamdp.store.problems import resume_job
from streamdp.store.verified_open import verify
from streamdp.types import Batch, CellCounts, CellQuery, Charge, Entropy, Json, Past, Query
from tests.store.kept import terms
from tests.worlds import EPSILON_NANO, World, quantiles_kind

RUN_NANO = 4 * EPSILON_NANO
CAPS = Caps(100 * EPSILON_NANO, 1000 * EPSILON_NANO)


@dataclass(frozen=True)
class Scripted:
    """A gate kind that says what it is told, by the key of the batch it was asked about."""

    yes: tuple[int, ...] = ()
    fails: bool = False
    kind: ThresholdingGate | None = None

    def query(self, batch: Batch) -> Query:
        return gate_kind().query(batch)

    def terms(self) -> Json:
        return {"epsilon": "0.4"}

    def charge(self) -> Charge:
        return gate_kind().charge()

    def start(self, entropy: Entropy) -> Json:
        return {"hidden": entropy.bits(32)}

    def accepts(
        self, hidden: Json, number: int, past: Past, statistic: CellCounts, entropy: Entropy
    ) -> bool:
        if self.fails:
            raise KeyboardInterrupt
        return number in self.yes


def gate_kind(factor: int = 2) -> ThresholdingGate:
    kind = quantiles_kind()
    question = Growth("records", Fraction(10), Fraction(factor))
    run = Thresholding(Fraction(4, 10), horizon=100)
    return ThresholdingGate(CellQuery("x", kind.grid), question, run)


def gate_of(
    world: World, kind: object, jobs: tuple[Job, ...] = (), **changes: object
) -> GateRunner:
    gate = GateRunner(
        name="gate",
        scope="s",
        source=world.source,
        backend=world.backend,
        kind=kind,  # type: ignore[arg-type]
        jobs=jobs,
        sinks=("list",),
        holds=(),
        manual=False,
        slot=1,
        horizon=100,
    )
    return replace(gate, **changes)  # type: ignore[arg-type]


def answers(world: World) -> str:
    rows = world.store.database.execute("SELECT accepted FROM gate_answer ORDER BY batch")
    return "".join("ny"[accepted] for (accepted,) in rows)


def ledger(world: World) -> list[str]:
    rows = world.store.database.execute("SELECT purpose FROM ledger ORDER BY seq")
    return [purpose for (purpose,) in rows][1:]


def test_a_gate_that_is_given_another_source_ends_its_run(tmp_path: Path) -> None:
    """The open run is paid for by one budget; batches of another source, though of the same
    names, are asked about in a run of their own."""
    world = World(tmp_path, days=3, caps=CAPS)
    world.store.declare(terms(CAPS, "s", "t"), world.clock.now())
    gate = gate_of(world, Scripted())
    assert not world.runner.round([gate]).errors
    other = replace(gate, scope="t", source=replace(world.source, name="t"))
    outcomes = world.runner.round([other])
    assert not outcomes.errors
    assert "gate.changed" in world.log.names()
    asked = world.store.database.execute("SELECT source, count(*) FROM gate_answer GROUP BY 1")
    assert dict(asked.fetchall()) == {"s": 3, "t": 3}
    verify(world.store.database)


def test_a_gated_job_releases_its_first_batch_and_what_is_accepted(tmp_path: Path) -> None:
    """Batch 0 unasked; a run over 1, 2 and 3, which is accepted; the next run begins with 4."""
    world = World(tmp_path, caps=CAPS)
    gate = gate_of(world, Scripted(yes=(3,)), (world.job(),))
    assert world.runner.round([gate, gate]).released == 2
    assert answers(world) == "nnyn"
    run = ["open", "join", "join", "join", "close"]
    assert ledger(world) == ["reserve", "commit", *run, "reserve", "commit", "open", "join"]
    assert world.count("SELECT sum(epsilon_nano) FROM ledger") == 2 * (RUN_NANO + EPSILON_NANO)
    assert world.runner.round([gate]).released == 0


def test_on_a_rejection_the_last_release_stands_and_sinks_are_told_for_nothing(
    tmp_path: Path,
) -> None:
    """A row for each rejected batch that names the release, at no price; of a yes the gate's."""
    world = World(tmp_path, caps=CAPS)
    world.runner.round([gate_of(world, Scripted(yes=(3,)), (world.job(),))])
    first, second, third, accepted, fourth, last = world.sink.taken
    assert [each.kind for each in (second, third, last)] == ["standing"] * 3
    assert second.rows[0] == {
        "accepted": False,
        "standing_release": first.id,
        "standing_batch": first.batch,
        "standing_window_start": "2023-11-15T00:00:00Z",
        "standing_window_end": "2023-11-16T00:00:00Z",
    }
    assert accepted.rows[0]["accepted"] is True
    assert accepted.rows[0]["standing_release"] == first.id
    assert last.rows[0]["standing_release"] == fourth.id
    assert (accepted.kind, accepted.job, accepted.batch) == ("gate", "gate", fourth.batch)
    assert {each.epsilon_nano for each in (second, third, accepted, last)} == {0}


def test_a_job_that_comes_later_to_a_gate_begins_with_its_own_first(tmp_path: Path) -> None:
    """It releases the next batch unasked, while for the other one the release stands."""
    world = World(tmp_path, caps=CAPS)
    world.clock.seconds = world.source.start + 2 * DAY
    world.runner.round([gate_of(world, Scripted(), (world.job(),))])
    world.clock.seconds += 2 * DAY
    both = (world.job(), world.job("later"))
    assert world.runner.round([gate_of(world, Scripted(), both)]).released == 1
    assert answers(world) == "nnn"
    told = [(each.job, each.kind, each.batch[-2:]) for each in world.sink.taken[2:]]
    assert sorted(told) == [
        ("job", "standing", "17"),
        ("job", "standing", "18"),
        ("later", "quantiles", "17"),
        ("later", "standing", "18"),
    ]


def test_a_gate_without_jobs_tells_and_holds(tmp_path: Path) -> None:
    """An acceptance pauses the job it names, and stays; resumed, the job goes on."""
    world = World(tmp_path, caps=CAPS)
    job = world.job()
    gate = gate_of(world, Scripted(yes=(2,)), holds=("job",))
    world.runner.round([gate])
    assert answers(world) == "nynyn"
    assert [each.kind for each in world.sink.taken] == ["gate", "gate"]
    assert world.runner.round([job]).paused == ["job"]
    resume_job(world.store.database, "job")
    assert world.runner.round([job]).released == 5


def test_manual_gates_wait_for_a_person(tmp_path: Path) -> None:
    """After an acceptance nothing is asked or charged until `rearm`; then the rest is caught up."""
    world = World(tmp_path, caps=CAPS)
    gate = gate_of(world, Scripted(yes=(2,)), manual=True)
    for _ in range(2):
        world.runner.round([gate])
        assert (answers(world), ledger(world).count("open")) == ("ny", 1)
    assert rearm(world.store.database, "gate")
    assert not rearm(world.store.database, "gate")
    world.runner.round([gate])
    assert (answers(world), ledger(world).count("open")) == ("nyny", 2)


def test_the_lifetime_cap_exhausts_a_gate(tmp_path: Path) -> None:
    """With room for one run the second is refused before it starts, and nothing more is read."""
    world = World(tmp_path, caps=Caps(2 * RUN_NANO, RUN_NANO + RUN_NANO // 2))
    outcomes = world.runner.round([gate_of(world, Scripted(yes=(2,)))])
    assert [error.code for error in outcomes.errors] == ["budget-exhausted"]
    assert answers(world) == "ny"
    assert len(world.backend.asked) == 2


def test_the_cap_of_a_batch_refuses_a_second_run(tmp_path: Path) -> None:
    """A batch bears each run it joined in full."""
    world = World(tmp_path, caps=Caps(RUN_NANO + RUN_NANO // 2, 1000 * EPSILON_NANO))
    one, two = (gate_of(world, Scripted(), name=name) for name in ("one", "two"))
    assert world.runner.round([one, two]).refused == 5
    assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'join'") == 5


def test_a_run_ends_at_its_horizon(tmp_path: Path) -> None:
    """Two tests a run: five batches take three runs, each charged."""
    world = World(tmp_path, caps=CAPS)
    world.runner.round([gate_of(world, Scripted(), horizon=2)])
    assert (answers(world), ledger(world).count("open")) == ("nnnnn", 3)
    assert world.log.names().count("gate.exhausted") == 2


def test_a_changed_configuration_begins_another_run(tmp_path: Path) -> None:
    """A threshold was drawn for its own noise: with another epsilon it cannot go on."""
    world = World(tmp_path, caps=CAPS)
    world.clock.seconds = world.source.start + 2 * DAY
    world.runner.round([gate_of(world, gate_kind(1000))])
    world.clock.seconds += DAY
    other = replace(gate_kind(1000), thresholding=Thresholding(Fraction(3, 10), horizon=100))
    world.runner.round([gate_of(world, other)])
    assert ledger(world) == ["open", "join", "join", "close", "open", "join"]
    assert "gate.changed" in world.log.names()


def test_a_batch_that_cannot_be_read_is_left_out_and_asked_again(tmp_path: Path) -> None:
    """The test is used up, the run and its threshold stay, the same batch gets the next test."""
    world = World(tmp_path, days=1, caps=CAPS)
    gate = gate_of(world, Scripted(yes=(2,)))
    world.backend.fails = True
    outcomes = world.runner.round([gate])
    assert [error.code for error in outcomes.errors] == ["source"]
    hidden = world.store.database.execute("SELECT hidden, tests FROM gate_run").fetchone()
    world.backend.fails = False
    assert world.store.gates.open_run("gate") is not None
    assert hidden[1] == 1
    assert not world.runner.round([gate]).errors
    assert answers(world) == "y"
    assert ledger(world) == ["open", "join", "close"]


@pytest.mark.parametrize("manual", [False, True])
def test_a_test_that_is_cut_off_ends_its_run(tmp_path: Path, manual: bool) -> None:
    """Whatever ends the walk after the draw began, the threshold is gone and the next is paid."""
    world = World(tmp_path, caps=CAPS, days=2)
    gate = gate_of(world, Scripted(fails=True), manual=manual)
    with pytest.raises(KeyboardInterrupt):
        world.runner.round([gate])
    assert ledger(world) == ["open", "join", "close"]
    world.runner.round([replace(gate, kind=Scripted())])
    assert answers(world) == ("" if manual else "nn")
    assert ledger(world).count("open") == (1 if manual else 2)
    assert world.count("SELECT count(*) FROM gate_run WHERE hidden IS NULL") == 1


def test_a_death_between_test_and_record_ends_its_run(tmp_path: Path) -> None:
    """What a kill leaves is found by the next process: charged, joined, asked, no answer."""
    world = World(tmp_path, days=2, caps=CAPS)
    gate = gate_of(world, Scripted())
    batches = list(world.source.batches(world.clock.now()))
    world.store.add_batches([(batch, None) for batch in batches], 0)
    run = world.store.gates.arm("s", "gate", gate_kind().charge(), gate.kind.terms(), {}, 0)
    assert world.store.gates.use_test(run.run, batches[0], 0) == 1
    world.open()
    world.runner.round([gate])
    assert "gate.lost" in world.log.names()
    assert answers(world) == "nn"
    assert ledger(world) == ["open", "join", "close", "open", "join", "join"]
    ended = world.store.database.execute("SELECT ended, hidden, tests FROM gate_run LIMIT 1")
    assert ended.fetchone() == ("lost", None, None)


def test_an_acceptance_outlives_a_death_before_its_release(tmp_path: Path) -> None:
    """The word was written: the next process releases without asking again."""
    world = World(tmp_path, days=2, caps=CAPS)
    job = world.job()
    world.clock.seconds = world.source.start + DAY
    world.runner.round([gate_of(world, Scripted(), (job,))])
    world.clock.seconds += DAY
    world.runner.round([gate_of(world, Scripted(yes=(1,)), ())])
    asked = len(world.backend.asked)
    world.open()
    assert world.runner.round([gate_of(world, Scripted(), (job,))]).released == 1
    assert len(world.backend.asked) == asked + 1
    assert ledger(world).count("join") == 2


@pytest.mark.parametrize("yes", [(), (1,)], ids=["no", "yes"])
def test_a_slow_test_leaves_the_rows_of_a_quick_one(tmp_path: Path, yes: tuple[int, ...]) -> None:
    """Within one slot: its answer, the end of its run and what sinks are owed have public times."""
    traces = []
    for seconds in (0.0, 0.4, 1.0, 29.0):
        world = World(tmp_path / str(seconds), days=1, caps=CAPS, make=True)
        answer = world.backend.answer

        def slowly(query: Query, batch: Batch, world: World = world, took: float = seconds) -> Any:
            world.clock.seconds += int(took)
            world.clock.timed += took
            return answer(query, batch)  # noqa: B023

        world.backend.answer = slowly  # type: ignore[method-assign]
        world.runner.round([gate_of(world, Scripted(yes), slot=30, holds=("job",))])
        assert sum(world.clock.waited) == pytest.approx(30 - seconds)
        rows = {
            table: world.store.database.execute(f"SELECT {names} FROM {table}").fetchall()
            for table, names in (
                ("ledger", "seq, at, purpose, job, batch, epsilon_nano"),
                ("gate_answer", "batch, accepted, slot"),
                ("gate_run", "run, ended, waits"),
                ("outbox", "sink, next_at"),
                ("pause", "job, since"),
            )
        }
        notices = [(each.kind, each.released_at) for each in world.sink.taken]
        traces.append((rows, notices, world.log.events))
    assert all(trace == traces[0] for trace in traces)


def test_the_answer_comes_at_the_end_of_its_slot(tmp_path: Path) -> None:
    """Fast or slow, a test takes whole slots, and nothing is told before."""
    waits = {}
    for busy in (0.0, 0.1, 0.7):
        world = World(tmp_path / str(busy), days=1, caps=CAPS, make=True)
        world.clock.busy = busy
        world.runner.round([gate_of(world, Scripted(), slot=2)])
        (waited,) = world.clock.waited
        waits[busy] = round(waited + world.clock.timed - busy, 6) % 2
        (slot,) = world.store.database.execute("SELECT slot FROM gate_answer").fetchone()
        assert slot > world.clock.now()
    assert set(waits.values()) == {0}


def test_neighbours_leave_the_same_traces(tmp_path: Path) -> None:
    """One record more or less, same chance and answer: ledger, log, outbox, waits are equal."""
    traces = []
    for name, records in (("with", [7, *range(40, 60)]), ("without", list(range(40, 60)))):
        world = World(tmp_path / name, caps=CAPS, make=True)
        first = next(iter(world.source.batches(world.clock.now()))).key
        world.backend.values = {**world.backend.values, first: records}
        question = Drift(quantiles_kind().grid, Around(absolute=Fraction(30)), (Fraction(1, 2),))
        kind = replace(gate_kind(), question=question)
        world.runner.round([gate_of(world, kind, (world.job(),))])
        rows = [
            world.store.database.execute(f"SELECT {columns} ORDER BY 1, 2").fetchall()
            for columns in (
                "seq, at, purpose, job, batch, epsilon_nano, lifetime_spent_nano FROM ledger",
                "gate, batch, run, accepted, slot FROM gate_answer",
                "seq, sink, attempts, next_at, delivered_at FROM outbox",
                "batch, job, kind, noticed_at FROM notice",
            )
        ]
        told = [(event, {**f, "release": "release" in f}) for event, f in world.log.events]
        traces.append((rows, told, world.clock.waited))
    assert traces[0] == traces[1]
    assert len(traces[0][0][1]) == 4


def test_hidden_state_is_in_no_log_and_no_repr(tmp_path: Path) -> None:
    """The threshold and the count of tests are in their table, and nowhere else."""
    world = World(tmp_path, caps=CAPS)
    world.runner.round([gate_of(world, Scripted())])
    (hidden,) = world.store.database.execute("SELECT hidden FROM gate_run").fetchone()
    run = world.store.gates.open_run("gate")
    number = "".join(character for character in hidden if character.isdigit())
    assert len(number) > 5
    written = f"{world.log.events}{run}{run!r}{world.sink.taken}"
    assert number not in written
    assert "tests" not in written
