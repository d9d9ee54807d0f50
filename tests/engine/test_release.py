"""The walk of a release."""

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.engine.attempts import Outcomes, Task
from streamdp.engine.release import RELEASE_ID_BITS
from streamdp.errors import LockedError, StoreError
from streamdp.privacy.filters import Caps, Limit
from streamdp.sources.files import FileSource
from streamdp.sources.windows import DAY, WindowSource
from streamdp.store.ledger.ledger import set_caps
from streamdp.store.problems import pause_job, resume_job
from streamdp.store.release_rows import ROWS_OF_RELEASE
from streamdp.types import Batch, CellCounts, Charge, Entropy, Json, Outcome, Plan, Query
from streamdp.types.releases import FIRST_REST, LONGEST_REST
from tests.worlds import (
    EPSILON_NANO,
    START,
    EventLog,
    HandClock,
    MemoryBackend,
    World,
    quantiles_kind,
)


def test_a_round_releases_every_sealed_window_once(tmp_path: Path) -> None:
    """Five windows give five releases, charges, learner versions and deliveries; a second none."""
    world = World(tmp_path)
    assert world.runner.round([world.job()]).released == 5
    assert world.runner.round([world.job()]).released == 0
    assert [release.batch for release in world.sink.taken] == world.backend.asked
    assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'commit'") == 5
    assert world.count("SELECT max(version) FROM learner") == 5
    assert world.count("SELECT count(*) FROM outbox WHERE delivered_at NOT NULL") == 5


def test_a_window_is_due_only_after_its_end(tmp_path: Path) -> None:
    """While the clock stands inside the third window, two are released."""
    world = World(tmp_path)
    world.clock.seconds = world.source.start + 2 * 86_400 + 10
    assert world.runner.round([world.job()]).released == 2


def test_a_source_that_fails_after_the_reservation_burns_the_charge(tmp_path: Path) -> None:
    """The charge stays spent, no release exists, and the next round pays again."""
    world = World(tmp_path, days=1)
    world.backend.fails = True
    outcomes = world.runner.round([world.job()])
    assert [error.code for error in outcomes.errors] == ["source"]
    assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'burn'") == 1
    world.backend.fails = False
    world.clock.seconds += FIRST_REST
    assert world.runner.round([world.job()]).released == 1
    assert world.count("SELECT sum(epsilon_nano) FROM ledger") == 2 * EPSILON_NANO


def test_an_engine_that_fails_for_ever_burns_slowly(tmp_path: Path) -> None:
    """Woken every minute for a day, a job whose engine is down tries a dozen times.

    The log says once a rest until when it lasts.
    """
    world = World(tmp_path)
    world.backend.fails = True
    for _ in range(24 * 60):
        world.runner.round([world.job()])
        world.clock.seconds += 60
    burns = world.count("SELECT count(*) FROM ledger WHERE purpose = 'burn'")
    assert 5 <= burns <= 12
    told = [fields["until"] for name, fields in world.log.events if name == "job.rests"]
    assert len(told) == len(set(told)) == burns - 1
    world.backend.fails = False
    world.clock.seconds += LONGEST_REST
    assert world.runner.round([world.job()]).released >= 1


def test_a_restart_is_no_way_around_a_rest(tmp_path: Path) -> None:
    """A process that dies in each draw and is started anew each second burns a few charges a day.

    After the first death there is no rest; `patient=False` waits for none; a release ends it.
    """
    world = World(tmp_path, caps=Caps(100 * EPSILON_NANO, 1000 * EPSILON_NANO))
    job = world.job()
    (batch, *_) = world.source.batches(world.clock.now())
    world.store.add_batches([(batch, None)], 0)

    def die(*arguments: object) -> None:
        raise KeyboardInterrupt

    world.store.commit = die  # type: ignore[method-assign,assignment]
    for _ in range(2000):
        world.clock.seconds += 60
        with suppress(KeyboardInterrupt):
            world.runner.round([job])
        world.store.recover(world.clock.now())
    burnt = world.count("SELECT count(*) FROM ledger WHERE purpose = 'burn'")
    assert 5 <= burnt <= 14
    assert world.count("SELECT sum(epsilon_nano) FROM ledger") == burnt * EPSILON_NANO
    world.open()
    assert world.runner.round([job]).resting == ["job"]
    world.runner.patient = False
    assert world.runner.round([job]).released == 5
    world.runner.patient = True
    assert world.runner.round([job]).resting == []


@pytest.mark.parametrize("edit", ["longer", "shifted", "files", "zone"])
def test_windows_cut_otherwise_are_refused(tmp_path: Path, edit: str) -> None:
    """A record in two batches would pay from two caps: nothing is released, nothing spent."""
    world = World(tmp_path)
    world.runner.round([world.job()])
    before = world.count("SELECT count(*) FROM ledger")
    start = world.source.start
    world.source = {
        "longer": WindowSource("s", start, 2 * DAY),
        "shifted": WindowSource("s", start + 3600, DAY),
        "files": FileSource("s", str(tmp_path / "*.db")),
        "zone": WindowSource("s", start, DAY, zone=ZoneInfo("Etc/GMT-1")),
    }[edit]  # type: ignore[assignment]
    outcomes = world.runner.round([world.job()])
    assert [error.code for error in outcomes.errors] == ["configuration"]
    assert world.count("SELECT count(*) FROM ledger") == before


def test_windows_may_be_added_before_and_after(tmp_path: Path) -> None:
    """An earlier start and a later end of the same cut are new batches, no other ones."""
    world = World(tmp_path)
    world.runner.round([world.job()])
    start = world.source.start
    world.source = WindowSource("s", start - 2 * DAY, DAY, start + 7 * DAY)
    assert world.runner.round([world.job()]).released == 4


def test_a_file_that_cannot_be_read_holds_up_no_other(tmp_path: Path) -> None:
    """Missing column, odd name or changed content: the other files are released, nothing burns."""
    world = World(tmp_path)
    for name, column in (("a.csv", "x"), ("b.csv", "y"), ("c.csv", "x")):
        (tmp_path / name).write_text(f"{column}\n1\n")
    (tmp_path / os.fsdecode(b"d\xff.csv")).write_text("x\n1\n")
    job = replace(
        world.job(),
        source=FileSource("s", str(tmp_path / "*.csv")),
        backend=DuckDBBackend("", "csv", types={"x": "number"}),
    )
    outcomes = world.runner.round([job])
    assert [release.batch for release in world.sink.taken] == ["a.csv", "c.csv"]
    assert [error.code for error in outcomes.errors] == ["source", "missing-column"]
    assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'burn'") == 0
    str(outcomes.errors[0]).encode()


def test_a_file_that_changes_behind_the_look_at_it_is_not_read(tmp_path: Path) -> None:
    """A round looks at all files first; those of late turns are looked at again before they pay."""
    world = World(tmp_path)
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("x\n1\n")
    job = replace(
        world.job(),
        source=FileSource("s", str(tmp_path / "*.csv")),
        backend=DuckDBBackend("", "csv", types={"x": "number"}),
    )

    def write_more(task: Task, done: int, total: int) -> None:
        (tmp_path / "b.csv").write_text("x\n1\n2\n")

    world.runner.progress = write_more
    outcomes = world.runner.round([job])
    assert [release.batch for release in world.sink.taken] == ["a.csv"]
    assert [error.code for error in outcomes.errors] == ["batch-altered"]
    assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'reserve'") == 1


def test_a_job_is_paused_in_its_catch_up(tmp_path: Path) -> None:
    """A pause takes force before the next release, not after the last."""
    world = World(tmp_path)

    def pause_after_two(task: Task, done: int, total: int) -> None:
        if done == 1:
            pause_job(world.store.database, "job", 0)

    world.runner.progress = pause_after_two
    outcomes = world.runner.round([world.job()])
    assert (outcomes.released, outcomes.paused) == (2, ["job"])


@pytest.mark.parametrize("state", [None, [], {"nonsense": 1}])
def test_a_state_that_cannot_be_planned_with_is_put_aside(tmp_path: Path, state: Json) -> None:
    """What was learned is worth less than a release: planning starts anew and says so."""
    world = World(tmp_path, days=2)
    world.clock.seconds = world.source.start + DAY
    world.runner.round([world.job()])
    world.store.database.execute("UPDATE learned_state SET state = ?", [json.dumps(state)])
    world.clock.seconds += DAY
    assert world.runner.round([world.job()]).released == 1


def test_foreign_words_stay_inside(tmp_path: Path) -> None:
    """An exception nobody foresaw burns, and neither its text nor its cause gets out."""
    world = World(tmp_path, days=1)

    def fail(query: object, batch: object) -> CellCounts:
        raise KeyError("CANARY")

    world.backend.answer = fail  # type: ignore[method-assign]
    (error,) = world.runner.round([world.job()]).errors
    assert error.code == "internal"
    assert "CANARY" not in f"{error}{error.__cause__}"
    assert "KeyError" not in str(error)
    assert (
        "release.failed",
        {"job": "job", "code": "internal", **error.fields},
    ) in world.log.events
    assert str(error.fields["id"]) in str(error)
    assert error.__suppress_context__
    assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'burn'") == 1


@pytest.mark.parametrize("dies_in", ["draw", "learn"])
def test_a_death_between_reserve_and_commit_burns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_in: str
) -> None:
    """Whatever ends the walk after the reservation, the charge is settled as burnt."""
    world = World(tmp_path, days=1)
    kind = quantiles_kind()

    def die(*arguments: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(kind), dies_in, die)
    with pytest.raises(KeyboardInterrupt):
        world.runner.round([world.job(kind=kind)])
    assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'burn'") == 1
    assert world.count("SELECT count(*) FROM release") == 0


def test_recovery_burns_what_a_dead_process_left_open(tmp_path: Path) -> None:
    """A reservation without an end is burnt by the next process, and the window is due again."""
    world = World(tmp_path, days=1)
    job, (batch,) = world.job(), tuple(world.source.batches(world.clock.now()))
    plan = job.kind.plan(job.kind.init(), batch)
    world.store.add_batches([(batch, None)], 0)
    world.store.reserve("s", "job", batch, job.charging.charge(plan), 0)
    world.open()
    assert world.runner.round([job]).released == 1
    assert "recovery.burnt" in world.log.names()
    assert world.count("SELECT sum(epsilon_nano) FROM ledger") == 2 * EPSILON_NANO


def test_the_batch_cap_bounds_all_jobs_of_a_source_together(tmp_path: Path) -> None:
    """With room for one charge a batch, a second job under another name gets none."""
    world = World(tmp_path, caps=Caps(EPSILON_NANO, 100 * EPSILON_NANO))
    world.runner.round([world.job("first")])
    outcomes = world.runner.round([world.job("renamed")])
    assert (outcomes.released, outcomes.refused) == (0, 5)
    assert world.count("SELECT sum(epsilon_nano) FROM ledger") == 5 * EPSILON_NANO


def test_a_refused_batch_is_tried_once_until_the_caps_change(tmp_path: Path) -> None:
    """Later rounds and processes pass it over in silence; insisting or a new cap tries it again."""
    tight = (Limit(2 * EPSILON_NANO, batches=3),)
    world = World(tmp_path, days=4, caps=Caps(EPSILON_NANO, 100 * EPSILON_NANO, tight))
    outcomes = world.runner.round([world.job()])
    assert (outcomes.released, outcomes.refused) == (3, 1)
    for _ in range(2):
        assert world.runner.round([world.job()]) == Outcomes()
        world.open()
    assert world.log.names().count("budget.exhausted") == 1
    world.source = WindowSource("s", START, DAY, START + 5 * DAY)
    assert world.runner.round([world.job()]) == Outcomes(released=1)
    assert world.runner.round([world.job()], lambda batch: True) == Outcomes(refused=1)
    wide = Caps(EPSILON_NANO, 100 * EPSILON_NANO, (Limit(3 * EPSILON_NANO, batches=3),))
    with world.store.transaction():
        set_caps(world.store.database, "s", wide, {"by": "test"}, world.clock.now())
    assert world.runner.round([world.job()]) == Outcomes(released=1)


def test_the_lifetime_cap_ends_a_job(tmp_path: Path) -> None:
    """With room for three charges there are three releases, and the error says what is left."""
    world = World(tmp_path, caps=Caps(EPSILON_NANO, 3 * EPSILON_NANO + EPSILON_NANO // 2))
    outcomes = world.runner.round([world.job()])
    assert outcomes.released == 3
    assert [error.code for error in outcomes.errors] == ["budget-exhausted"]
    assert outcomes.errors[0].fields["left_nano"] == EPSILON_NANO // 2


def test_a_sink_that_is_down_costs_nothing_and_gets_the_same_release_later(tmp_path: Path) -> None:
    """The outbox keeps the releases; when the sink is back it gets each once, in order."""
    world = World(tmp_path, days=3)
    world.sink.fails = True
    outcomes = world.runner.round([world.job()])
    assert [error.code for error in outcomes.errors] == ["sink"]
    rows = world.store.database.execute("SELECT id FROM release ORDER BY reservation").fetchall()
    world.sink.fails = False
    world.clock.seconds += 4000
    world.runner.round([world.job()])
    assert [release.id for release in world.sink.taken] == [row[0] for row in rows]
    assert world.count("SELECT sum(epsilon_nano) FROM ledger") == 3 * EPSILON_NANO


def test_a_process_that_lost_the_store_writes_nothing(tmp_path: Path) -> None:
    """After another process has opened the store, the first finds its epoch outdated."""
    world = World(tmp_path)
    suspended = world.runner
    world.open()
    before = world.count("SELECT count(*) FROM ledger")
    with pytest.raises(LockedError):
        suspended.round([world.job()])
    assert world.count("SELECT count(*) FROM ledger") == before


def test_a_learner_that_moved_on_meanwhile_refuses_the_commit(tmp_path: Path) -> None:
    """A commit whose learner version is taken is refused whole, and its charge burnt."""
    world = World(tmp_path, days=2)
    world.runner.round([world.job()])
    database = world.store.database
    job = world.job("other")

    class Racing(type(job.kind)):  # type: ignore[misc]
        def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
            database.execute(
                "INSERT INTO learner SELECT reservation, 'other', 1, '{}', x'' FROM release LIMIT 1"
            )
            database.execute(
                "INSERT INTO learned_state SELECT reservation, '{}' FROM release LIMIT 1"
            )
            return super().learn(state, plan, outcome)

    database.execute("PRAGMA foreign_keys=OFF")
    database.execute("DELETE FROM learner")
    database.execute("DELETE FROM learned_state")
    kind = quantiles_kind()
    racing = Racing(kind.column, kind.quantiles, kind.epsilon, kind.grid, kind.learner)
    with pytest.raises(StoreError, match="changed meanwhile"):
        world.runner.round([world.job("other", racing)])
    assert world.count("SELECT count(*) FROM release WHERE job = 'other'") == 0
    assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'burn'") == 1


def test_a_learner_that_fails_starts_anew_and_the_release_stands(tmp_path: Path) -> None:
    """Learning is worth less than a release: its failure costs nothing but what was learned."""
    world = World(tmp_path, days=2)

    class Failing(type(quantiles_kind())):  # type: ignore[misc]
        def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
            raise FloatingPointError

    kind = quantiles_kind()
    failing = Failing(kind.column, kind.quantiles, kind.epsilon, kind.grid, kind.learner)
    assert world.runner.round([world.job(kind=failing)]).released == 2
    assert world.log.names().count("learner.restarted") == 2


def test_a_changed_configuration_restarts_the_learner_and_says_so(tmp_path: Path) -> None:
    """Another resolution is another signature: the state does not carry over."""
    world = World(tmp_path, days=3)
    world.clock.seconds = world.source.start + 2 * 86_400
    world.runner.round([world.job()])
    world.clock.seconds += 86_400
    world.runner.round([world.job(kind=quantiles_kind(resolution=2))])
    assert world.log.names().count("learner.restarted") == 1
    assert world.count("SELECT max(version) FROM learner") == 3


def test_neighbours_leave_the_same_traces(tmp_path: Path) -> None:
    """Two batches that differ in one record, same chance: only the published values may differ.

    The store is compared row by row and the log event by event, with the values and what follows
    from them (learner state, prior digest and hashes) left out.
    """
    traces = []
    for name, records in (("with", [7, *range(40, 60)]), ("without", list(range(40, 60)))):
        folder = tmp_path / name
        folder.mkdir()
        world = World(folder)
        first = next(iter(world.source.batches(world.clock.now()))).key
        world.backend.values = {**world.backend.values, first: records}
        world.runner.round([world.job()])
        traces.append((_public_rows(world), _events(world)))
    assert traces[0] == traces[1]


def test_an_empty_batch_leaves_the_traces_of_a_full_one(tmp_path: Path) -> None:
    """No records: same charge, same events, same rows; nobody can tell that nobody was there."""
    traces = []
    for name, records in (("empty", []), ("full", list(range(100)))):
        folder = tmp_path / name
        folder.mkdir()
        world = World(folder, days=1)
        key = next(iter(world.source.batches(world.clock.now()))).key
        world.backend.values = {key: records}
        world.runner.round([world.job()])
        traces.append((_public_rows(world), _events(world)))
    assert traces[0] == traces[1]


@dataclass
class Slowly(MemoryBackend):
    """Takes its time to answer, by the clock on the wall."""

    clock: HandClock = field(default_factory=HandClock)
    seconds: int = 0

    def answer(self, query: Query, batch: Batch) -> CellCounts:
        self.clock.seconds += self.seconds
        self.clock.timed += self.seconds
        return super().answer(query, batch)


@pytest.mark.parametrize("fails", [False, True])
def test_a_slow_question_leaves_the_traces_of_a_quick_one(tmp_path: Path, fails: bool) -> None:
    """Released or burnt, all rows have the time of the reservation, and so has what sinks get."""
    traces = []
    for seconds in (0, 1, 500):
        world = World(tmp_path / str(seconds), days=1, make=True)
        world.backend = Slowly(world.backend.values, fails, clock=world.clock, seconds=seconds)
        job = world.job()
        world.runner.round([job])
        posted = world.store.database.execute("SELECT sink, next_at FROM outbox").fetchall()
        told = [release.released_at for release in world.sink.taken]
        traces.append((_public_rows(world), _events(world), posted, told))
        assert bool(told) is not fails
    assert traces[0] == traces[1] == traces[2]


def _events(world: World) -> list[object]:
    """Events with release ids as marks: they are random, so equal only by their place."""
    return [(name, {**fields, "release": "release" in fields}) for name, fields in world.log.events]


def _public_rows(world: World) -> list[object]:
    database = world.store.database
    ledger = [
        {name: value for name, value in row.items() if name not in ("previous", "hash", "event")}
        for row in database.query("SELECT * FROM ledger ORDER BY seq")
    ]
    for row in ledger:
        row["release_id"] = row["release_id"] is not None
    releases = database.execute(
        "SELECT job, batch, kind, epsilon_nano, reservation, released_at FROM release"
    ).fetchall()
    shapes = [
        [sorted(row) for row in json.loads(rows)]
        for (rows,) in database.execute(
            f"SELECT {ROWS_OF_RELEASE} FROM release r ORDER BY reservation"
        )
    ]
    return [ledger, releases, shapes]


def test_statistics_do_not_show_themselves() -> None:
    """Neither cell counts nor grains print what they hold."""
    import numpy as np

    from streamdp.mechanisms.quantile_tree.grains import Grains

    counts = CellCounts(np.array([123456]), np.array([98765]))
    for secret in (counts, Grains.of(counts)):
        assert "123456" not in f"{secret} {secret!r}"
        assert "98765" not in f"{secret} {secret!r}"


def test_entropy_that_fails_burns(tmp_path: Path) -> None:
    """No chance to be had for the draw: no release, and the charge is burnt."""

    class Broken:
        def bits(self, count: int) -> int:
            if count != RELEASE_ID_BITS:
                raise OSError("no entropy")
            return 0

    world = World(tmp_path, days=1)
    broken: Entropy = Broken()
    object.__setattr__(world.runner.around, "entropy", broken)
    (error,) = world.runner.round([world.job()]).errors
    assert error.code == "internal"
    assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'burn'") == 1


def test_no_entropy_at_all_spends_nothing(tmp_path: Path) -> None:
    """Not even the number of a release is to be had: an error, no charge, the round goes on."""

    class Broken:
        def bits(self, count: int) -> int:
            raise OSError("no entropy")

    world = World(tmp_path, days=1)
    object.__setattr__(world.runner.around, "entropy", Broken())
    errors = world.runner.round([world.job(), world.job("other")]).errors
    assert [error.code for error in errors] == ["internal", "internal"]
    assert world.count("SELECT count(*) FROM ledger WHERE purpose != 'cap'") == 0


def test_a_paused_job_waits(tmp_path: Path) -> None:
    """A paused job releases nothing, also after a restart; resumed it catches up."""
    world = World(tmp_path)
    pause_job(world.store.database, "job", 0)
    world.open()
    assert world.runner.round([world.job()]).released == 0
    resume_job(world.store.database, "job")
    assert world.runner.round([world.job()]).released == 5
    assert isinstance(world.log, EventLog)


def test_a_batch_that_was_released_is_not_charged_again(tmp_path: Path) -> None:
    """The store itself refuses it, whoever asks and whatever the charge."""
    world = World(tmp_path, days=1)
    job = world.job()
    world.runner.round([job])
    (batch,) = job.source.batches(world.clock.now())
    rows = world.count("SELECT count(*) FROM ledger")
    with pytest.raises(StoreError, match="already released"):
        world.store.reserve(job.scope, job.name, batch, Charge({"type": "x"}, 1, 1), 0)
    assert world.count("SELECT count(*) FROM ledger") == rows
