"""Short sweeps, each with a proof that it would find what it looks for."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from streamdp.backends.duckdb.dialect import DuckDBDialect
from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.daemon import reports
from streamdp.database import Database
from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.keys.kind import Keys
from streamdp.kinds.selection.kind import Selection
from streamdp.kinds.spec import OWN
from streamdp.mechanisms.quantile_tree.planning import accuracy
from streamdp.privacy.events import charge_of
from streamdp.reports.releases.digest import Digest, digest
from streamdp.sinks.columns import record
from streamdp.sinks.jsonl import JsonLinesSink
from streamdp.store import archive, database, outbox, reconcile, row_checksums, verified_open
from streamdp.store.anchor import Anchor, AnchorLine, Spending, StoreState
from streamdp.store.gates import GateRuns
from streamdp.store.ledger import chain, charges, ledger
from streamdp.store.sqlite import SqliteStore
from streamdp.types import (
    Batch,
    CellCounts,
    CellQuery,
    Entropy,
    GateRun,
    KeyCounts,
    Outcome,
    Plan,
    Release,
    Reservation,
)
from tests.crash import __main__ as sweeps
from tests.crash import (
    canaries,
    disks,
    edited,
    every_kind,
    forms,
    gated,
    kills,
    pages,
    power,
    races,
    restores,
    rolled,
    tracer,
    twins,
    unfound,
    walks,
    windows,
)
from tests.crash.every_kind import EveryKind
from tests.crash.found import FoundHome
from tests.crash.gated import GatedHome
from tests.crash.home import Home
from tests.crash.tracer import Life, Point
from tests.crash.windows import WindowsHome

T = TypeVar("T")

pytestmark = pytest.mark.skipif(not tracer.supported(), reason="a child cannot be traced here")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home.furnish(tmp_path_factory.mktemp("crash") / "template")


@pytest.fixture(scope="module")
def life(template: Home) -> Life:
    return kills.first_life(template)


@pytest.fixture(scope="module")
def stands(template: Home) -> Sequence[pages.Stand]:
    return tuple(pages.stands(template))


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> GatedHome:
    return GatedHome.furnish(tmp_path_factory.mktemp("gate") / "template")


@pytest.fixture(scope="module")
def life_of_gate(gate: GatedHome) -> Life:
    return kills.first_life(gate)


@pytest.fixture(autouse=True)
def few_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    """`plan` simulates a tenth of what it does: it is looked at for what it says and writes."""
    monkeypatch.setattr(accuracy, "REPEATS", 8)


def some(cases: Iterable[T], count: int) -> list[T]:
    """So many of the cases, spread evenly."""
    every = tuple(cases)
    return list(every[len(every) // (2 * count) :: max(1, len(every) // count)])


@dataclass
class Counting:
    """Entropy that counts how often it is asked."""

    entropy: Entropy
    requests: int = 0

    def bits(self, count: int) -> int:
        self.requests += 1
        return self.entropy.bits(count)


def about_the_middle(life: Life) -> list[Point]:
    """Points of a life, spread evenly, those of its middle first: there its gate is asked."""
    middle = len(life.stops) / 2
    return sorted(some(life.deaths(), 25), key=lambda point: abs(point.stop - middle))


def test_every_kind_of_call_is_stopped_at(life: Life) -> None:
    """Statements, writes, waits for the disk, new files and cut ones are all among the points."""
    kinds = {"sql", "write", "pwrite", "fsync", "fdatasync", "create", "truncate", "unlink"}
    assert kinds <= set(life.stops)
    assert len(tuple(life.deaths())) > 1000


def test_killed_anywhere(template: Home, life: Life) -> None:
    """A restart completes the work, loses nothing and pays for nothing twice."""
    for point in some(life.deaths(), 10):
        assert kills.violations(template, point) == []


def test_a_daemon_that_forgets_open_charges_is_caught(
    template: Home, life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power: without recovery, a death between reserve and commit leaves a charge open."""
    monkeypatch.setattr(SqliteStore, "recover", lambda self, now: ())
    assert any(kills.violations(template, point) for point in some(life.deaths(), 20))


def test_a_sink_that_is_not_idempotent_is_caught(
    template: Home, life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power: a death between a line and its confirmation doubles the line."""
    monkeypatch.setattr(
        JsonLinesSink,
        "deliver",
        lambda self, release: self._append((json.dumps(record(release)) + "\n").encode()),
    )
    stops = [point for point in life.deaths() if life.stops[point.stop] == "fsync"]
    assert any(kills.violations(template, point) for point in reversed(stops))


def test_killed_while_a_gate_is_asked(gate: GatedHome, life_of_gate: Life) -> None:
    """An interrupted test ends its run and is asked anew; answers and notices are there once."""
    for point in about_the_middle(life_of_gate)[:5]:
        assert kills.violations(gate, point, gated.aftermath) == []


def test_a_run_that_outlives_an_interrupted_test_is_caught(
    gate: GatedHome, life_of_gate: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power: taken for one that was never drawn, the test is asked again under the same charge."""
    open_run = GateRuns.open_run

    def forgetful(self: GateRuns, gate: str) -> GateRun | None:
        run = open_run(self, gate)
        if run is None or run.asked is None:
            return run
        self.leave_out(run.run)
        return replace(run, asked=None)

    monkeypatch.setattr(GateRuns, "open_run", forgetful)
    assert any(
        kills.violations(gate, point, gated.aftermath) for point in about_the_middle(life_of_gate)
    )


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> WindowsHome:
    return WindowsHome.furnish(tmp_path_factory.mktemp("window") / "template")


def test_killed_while_a_window_is_charged(window: WindowsHome) -> None:
    """Between the rows of its charge; each window is paid and released once, delta adds up."""
    points = windows.charging(kills.first_life(window))
    assert len(points) > 100
    for point in some(points, 4):
        assert kills.violations(window, point) == []


@pytest.mark.long
def test_a_window_that_is_charged_in_two_steps_is_caught(
    window: WindowsHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power: a death between the charge and its other batches leaves them uncharged."""
    reserve: Any = SqliteStore.reserve

    def hasty(self: SqliteStore, *about: Any) -> Reservation:
        *first, now, others = about
        made: Reservation = reserve(self, *first, now)
        for other in others:
            with self.transaction():
                ledger._join(self.database, made.seq, other, made.job, {"type": "window"}, now)
        return made

    monkeypatch.setattr(windows, "_reserve", hasty)
    points = windows.charging(kills.first_life(window))
    found = [wrong for point in some(points, 16) for wrong in kills.violations(window, point)]
    assert any("counts against each batch of its window" in wrong for wrong in found)


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> FoundHome:
    return FoundHome.furnish(tmp_path_factory.mktemp("found") / "template")


def test_killed_while_groups_are_found_and_counted(groups: FoundHome) -> None:
    """Groups of a day are the keys of the windows before it; the statement's delta is paid."""
    for point in some(kills.first_life(groups).deaths(), 3):
        assert kills.violations(groups, point) == []


def test_groups_of_the_same_batch_are_caught(
    groups: FoundHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power: a day that is counted by the newest keys there are, those of its own window."""
    monkeypatch.setattr(SqliteStore, "release_before", lambda self, job, *_: self.last_release(job))
    home = groups.copy(tmp_path / "home")
    assert tracer.live(home.live).status == 0
    assert any("the towns that were found before it" in wrong for wrong in home.broken())


def test_every_kind_is_in_its_sweeps() -> None:
    """A kind of streamdp that is added is released, killed and compared."""
    sections = yaml.safe_load(every_kind.CONFIG)["releases"].values()
    assert {section["kind"] for section in sections} == set(OWN)
    assert {kind.name for kind in every_kind.CLASSES} == set(OWN)


def test_killed_anywhere_in_every_kind(tmp_path: Path) -> None:
    """Releases of all kinds are made once and stand in their tables once, after any death."""
    home = EveryKind.furnish(tmp_path / "template")
    for point in some(kills.first_life(home).deaths(), 2):
        assert kills.violations(home, point) == []


@pytest.fixture(scope="module")
def rollups(tmp_path_factory: pytest.TempPathFactory) -> rolled.RolledHome:
    return rolled.RolledHome.furnish(tmp_path_factory.mktemp("rolled") / "template")


def while_rolled_up(home: rolled.RolledHome) -> list[Point]:
    """Deaths in the last part of a life, in which its rollups are made and delivered."""
    deaths = tuple(kills.first_life(home).deaths())
    return list(deaths[len(deaths) // 2 :])


def test_killed_while_periods_are_rolled_up(rollups: rolled.RolledHome) -> None:
    """A restart makes what is missing, once, and every sink gets it once."""
    for point in some(while_rolled_up(rollups), 5):
        assert kills.violations(rollups, point) == []


def test_a_rollup_that_is_written_before_its_deliveries_is_caught(
    rollups: rolled.RolledHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power: a death between the two leaves a rollup that no sink ever gets."""
    add = SqliteStore.add_rollup

    def apart(
        self: SqliteStore, made: Release, step: str, revision: int, of: str, sinks: Iterable[str]
    ) -> bool:
        new = add(self, made, step, revision, of, ())
        with self.transaction():
            outbox.post(self.database, made.id, list(sinks), made.released_at)
        return new

    monkeypatch.setattr(SqliteStore, "add_rollup", apart)
    points = random.Random(0).sample(while_rolled_up(rollups), 60)
    assert any(kills.violations(rollups, point) for point in points)


def cuts(template: Home, stride: int) -> Iterator[str]:
    """Violations of one in so many power cuts."""
    with power.life(template) as shadow:
        for number in range(0, len(shadow.seen), stride):
            yield from power.violations(shadow, number)


@pytest.mark.skipif(not tracer.INTEL, reason="reads registers of x86-64")
def test_power_cuts(template: Home) -> None:
    """What was not waited for is lost, and every release that somebody may have seen is there."""
    assert list(cuts(template, 6)) == []


@pytest.mark.skipif(not tracer.INTEL, reason="reads registers of x86-64")
def test_a_store_that_does_not_wait_for_the_disk_is_caught(
    template: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power: with `synchronous=OFF` a cut loses what was published."""

    def hasty(path: Path, *, create: bool = True) -> Database:
        made = database.connect(path, create=create)
        made.execute("PRAGMA synchronous = OFF")
        return made

    monkeypatch.setattr(verified_open, "connect", hasty)
    assert any(cuts(template, 4))


def test_full_disks(template: Home, life: Life) -> None:
    """Nothing charged, or burnt, or kept for later; and when space is back the work goes on."""
    for point in some(life.refusals(), 5):
        assert disks.refused(template, point) == []
    for limit, amount in some(disks.limits(template, 4096), 5):
        assert disks.limited(template, limit, amount) == []


def test_damaged_files(template: Home, stands: Sequence[pages.Stand], tmp_path: Path) -> None:
    """Flipped, cut or gone: refused in our words, or nothing is lost."""
    home = template.copy(tmp_path / "home")
    for stand in stands:
        for damage in some(pages.damages(stand, 61), 70):
            assert pages.verdict(home, stand, damage) is None


def test_a_store_that_checks_less_is_caught(
    template: Home, stands: Sequence[pages.Stand], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power: without chain, seals or schema, SQLite's own check lets flipped cells through."""
    home, stand = template.copy(tmp_path / "home"), stands[0]
    for module in (chain, archive, row_checksums):
        monkeypatch.setattr(module, "verify", lambda store: None)
    monkeypatch.setattr(verified_open, "require_schema", lambda store: None)
    damages = [each for each in pages.damages(stand, 61) if each.file == pages.STORE and each.mask]
    found = (pages.verdict(home, stand, damage) for damage in some(damages, 300))
    assert any("accepted" in (each or "") for each in found)


@pytest.mark.parametrize("locked", [True, False])
def test_two_daemons(template: Home, locked: bool) -> None:
    """One works, or both in turn; no charge is lost or spent twice, with the lock and without."""
    for _ in range(3):
        assert races.pair(template, locked=locked) == []


def test_the_last_charge() -> None:
    """Of a hundred threads one gets it."""
    assert list(races.last_unit(100)) == []


def test_threads_that_do_not_wait_for_each_other_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Power: without a transaction between look and charge several get it."""
    append = chain.append

    def slowly(*arguments: Any, **named: Any) -> Any:
        time.sleep(0.01)
        return append(*arguments, **named)

    monkeypatch.setattr(chain, "append", slowly)
    monkeypatch.setattr(races, "transaction", nullcontext)
    assert list(races.last_unit(20))


def test_marks_are_found_nowhere() -> None:
    """Values, words and digests of what was read are in no byte that was written."""
    size, found = canaries.scan(canaries.OF_EVERY_KIND)
    assert size > 500_000
    assert found == []


@pytest.mark.thinned(3)
@pytest.mark.parametrize("where", ["a file that is deleted", "the terminal", "a digest"])
def test_a_leak_is_found(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Power: one value, one word or one digest that gets out is found, wherever it went."""
    count = DuckDBBackend.answer

    def leaking(self: DuckDBBackend, query: CellQuery, batch: Batch) -> CellCounts:
        counts: CellCounts = count(self, query, batch)
        if where == "the terminal":
            print(canaries.NUMBERS[1])
        elif where == "a digest":
            Path("digest").write_text(hashlib.sha256(canaries.NUMBERS[0].encode()).hexdigest())
        else:
            Path("spill").write_bytes(canaries.WORDS[1].encode())
            os.unlink("spill")
        return counts

    monkeypatch.setattr(DuckDBBackend, "answer", leaking)
    assert canaries.scan()[1]


@pytest.mark.long
def test_a_leak_in_a_report_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power: a word in a PDF is compressed, and written in the numbers of its letters."""

    def leaking(*arguments: Any) -> Digest:
        found = digest(*arguments)
        return replace(found, words=replace(found.words, cost=canaries.WORDS[1]))

    monkeypatch.setattr(reports, "digest", leaking)
    report = "reports: {days: {job: stream_x, period: day, path: reports, form: [pdf]}}\n"
    assert canaries.scan(canaries.CONFIG + report)[1] == [f"{canaries.WORDS[1]} as text"]


def test_twins_leave_the_same_traces() -> None:
    """Neighbouring batches, the same chance: nothing but released values may differ."""
    for records, one_more in some(twins.neighbours(10), 2):
        assert twins.difference(records, one_more) == []


def test_twins_of_every_kind_leave_the_same_traces() -> None:
    """Kinds that add noise differ in released values alone; all else is equal, bytes and calls."""
    assert twins.difference(*twins.OF_EVERY_KIND[0], every_kind.CONFIG) == []


@pytest.mark.long
def test_twins_of_kinds_that_draw_leave_the_same_traces() -> None:
    """Draws are the same by a public outcome: then all is equal, bytes and calls."""
    with every_kind.public_outcomes():
        assert twins.difference(*twins.OF_EVERY_KIND[1], every_kind.COSTLY) == []


def test_a_key_that_is_not_found_leaves_no_trace() -> None:
    """One unit of it more: with too few units every byte is equal, else all but what is drawn."""
    assert unfound.below(*unfound.BELOW[1]) == []
    assert unfound.above(*unfound.FROM_THERE_ON[0]) == []


@pytest.mark.long
def test_a_trace_of_a_key_that_is_not_found_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power: a file as long as there are keys that coins were tossed for."""
    draw = Keys.draw

    def leaking(self: Keys, plan: Plan, statistic: KeyCounts, entropy: Entropy) -> Outcome:
        with Path("trace").open("ab") as trace:
            trace.write(b"x" * len(statistic.units))
        return draw(self, plan, statistic, entropy)

    monkeypatch.setattr(Keys, "draw", leaking)
    (found,) = unfound.above(*unfound.FROM_THERE_ON[0])
    assert found.endswith(": file trace")
    assert unfound.below(*unfound.BELOW[1]) == []


@pytest.mark.long
def test_twins_of_columns_leave_the_same_traces() -> None:
    """A product that overflows in Parquet, Arrow, Delta, and tables of DuckDB and PostgreSQL.

    A process of its own reads them, since none that has read Delta can fork another that does.
    """
    command = [sys.executable, "-m", "tests.crash.forms", "--json", "--quick"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    read = {json.loads(line)["form"] for line in ran.stdout.splitlines()}
    assert read >= {form.name for form in forms.FORMS}


def test_a_trace_of_an_overflow_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power: a product that is not tried burns the charge of one twin."""
    monkeypatch.setattr(DuckDBDialect, "tried", lambda _, expression: f"({expression})")
    parquet = forms.FORMS[0]
    with every_kind.public_outcomes():
        found = parquet.difference(*forms.NEIGHBOURS[0], forms.FEW)
    assert any("exit code of run --once" in each for each in found)


@pytest.mark.long
def test_a_trace_of_the_trials_of_a_draw_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power: how often a choice asked for bits is seen where a file is as long."""
    draw = Selection.draw

    def leaking(self: Selection, plan: Plan, statistic: Any, entropy: Entropy) -> Outcome:
        counted = Counting(entropy)
        outcome = draw(self, plan, statistic, counted)
        with Path("trace").open("ab") as trace:
            trace.write(b"x" * counted.requests)
        return outcome

    monkeypatch.setattr(Selection, "draw", leaking)
    with every_kind.public_outcomes():
        found = twins.difference((), "1,a", every_kind.COSTLY)
    assert found == ["() and '1,a': file trace"]


def test_a_trace_of_one_record_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power: a file as long as there are records tells twins apart."""
    count = DuckDBBackend.answer

    def leaking(self: DuckDBBackend, query: CellQuery, batch: Batch) -> CellCounts:
        counts: CellCounts = count(self, query, batch)
        with Path("trace").open("ab") as trace:
            trace.write(b"x" * int(counts.counts.sum()))
        return counts

    monkeypatch.setattr(DuckDBBackend, "answer", leaking)
    assert twins.difference(("7",) * 20, "7")


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(len(edited.WORLDS)))
def test_copies_put_back(seed: int) -> None:
    """Refused, charged for all that was forgotten, never above a cap, whatever was edited."""
    assert list(restores.wrongs(seed, 2)) == []


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    ("seed", "most", "module", "name", "mistake"),
    [
        (1, 2, reconcile, "assume_spent", lambda *arguments: None),
        (2, 8, reconcile, "end_open_runs", lambda *arguments: None),
        (0, 2, charges, "fullest", lambda *arguments: 0),
        (1, 2, UnitCharging, "charge", lambda self, plan: charge_of(plan.event)),
    ],
    ids=["charges forgotten", "a run that accepted goes on", "no cap", "a unit pays for a record"],
)
def test_what_is_not_paid_for_is_found(
    seed: int, most: int, module: Any, name: str, mistake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power: each step left out is seen by the accountant or in what was read.

    Few copies are of a moment with an open run that then accepts: that mistake needs more of them.
    """
    monkeypatch.setattr(module, name, mistake)
    assert any(restores.wrongs(seed, most))


def test_walks() -> None:
    """A few random walks; what may have been learned is charged."""
    for seed in range(2):
        assert walks.walk(seed, 25) == []


def test_a_walk_finds_a_forgotten_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power: a store put back from a backup and taken for the newest is found out by the model."""

    def gullible(
        self: Anchor, base: StoreState, target: StoreState, spent: Sequence[Spending] = ()
    ) -> None:
        self._write(AnchorLine(True, True, base, target, tuple(spent)))

    monkeypatch.setattr(verified_open, "_cut_off", lambda *arguments: ())
    monkeypatch.setattr(Anchor, "intend", gullible)
    monkeypatch.setattr(walks, "STEPS", {"tick": 3, "live": 3, "save": 1, "put_back": 2})
    assert any(walks.walk(seed, 25) for seed in range(4))


@pytest.mark.long
def test_all_sweeps() -> None:
    """Every point of every sweep."""
    assert [row for row in sweeps.rows(sweeps.Share()) if row["violations"]] == []


def test_processes_share_all_cases() -> None:
    """Of each sweep every case is tried by one process, and a row says of how many."""
    tried: list[int] = []

    def note(case: int) -> list[str]:
        tried.append(case)
        return []

    for part in range(3):
        assert sweeps.Share(part=part, parts=3).row("a sweep", range(10), note)["of"] == 10
    assert sorted(tried) == list(range(10))
