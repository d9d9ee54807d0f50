"""What a charge asks of the ledger stays the same however long the ledger is."""

from collections.abc import Callable
from pathlib import Path

import pytest

from streamdp.config import load
from streamdp.errors import IntegrityError
from streamdp.privacy.filters import Caps, Limit
from streamdp.reports import verification
from streamdp.reports.holds import holds
from streamdp.store.anchor import default_anchor, newest_target, state_of
from streamdp.store.ledger import chain
from streamdp.store.reading.reports import measure_of_job
from streamdp.store.sqlite import SqliteStore
from streamdp.types import Batch, Charge
from tests.store.kept import terms

ONE = 10
CHARGE = Charge({"type": "pure", "epsilon": "1"}, ONE, 1)
PLAIN = Caps(ONE, 10**9)
WIDE = Caps(ONE, 10**9, (Limit(70, batches=7),))


class Steps:
    """Counts what SQLite's machine does: the same in every run, whatever the machine."""

    def __init__(self, store: SqliteStore) -> None:
        self.taken = 0
        store.database.conn.set_progress_handler(self._one, 1)

    def _one(self) -> int:
        self.taken += 1
        return 0

    def since(self, before: int) -> int:
        return self.taken - before


def _charged(folder: Path, caps: Caps, count: int) -> tuple[SqliteStore, Steps, list[int]]:
    """Steps of each of many charges that are burnt."""
    store = SqliteStore.open(folder / "s.db", 0)
    store.declare(terms(caps), 0)
    steps, each = Steps(store), []
    for number in range(count):
        batch = Batch("s", f"{number:04d}", number, number + 1)
        store.add_batches([(batch, None)], 0)
        before = steps.taken
        store.burn(store.reserve("s", "j", batch, CHARGE, number), number)
        each.append(steps.since(before))
    return store, steps, each


def _steps_after(folder: Path, ask: Callable[[SqliteStore, int], None]) -> dict[int, int]:
    """Steps of what is asked of a store, after 40 and after 160 burnt charges."""
    taken = {}
    for count in (40, 160):
        (folder / str(count)).mkdir()
        store, steps, _ = _charged(folder / str(count), PLAIN, count)
        before = steps.taken
        ask(store, count)
        taken[count] = steps.since(before)
        store.close()
    return taken


@pytest.mark.parametrize("caps", [PLAIN, WIDE])
def test_a_charge_costs_the_same_after_many(tmp_path: Path, caps: Caps) -> None:
    store, _, each = _charged(tmp_path, caps, 200)
    assert each[199] < 1.1 * each[20]
    store.close()


def test_open_charges_are_found_in_one_pass(tmp_path: Path) -> None:
    """Looked for at every round: a search of all rows for each of them took seconds in a year."""

    def ask(store: SqliteStore, count: int) -> None:
        assert store.recover(count) == ()

    taken = _steps_after(tmp_path, ask)
    assert taken[160] < 5 * taken[40]


def test_the_measure_of_a_job_is_found_at_once(tmp_path: Path) -> None:
    """Every look at a page asks for it: a pass over the ledger took most of a look's time."""

    def ask(store: SqliteStore, count: int) -> None:
        assert measure_of_job(store.database, "j") == "epsilon"

    taken = _steps_after(tmp_path, ask)
    assert taken[160] < 1.1 * taken[40]


GATED = """
store: {path: s.db}
privacy: {unit: row, caps: {batch: 1, lifetime: 20}}
sources: {s: {path: s.csv, batches: {column: at, every: 1d, start: 2026-01-01}, types: {x: number}}}
releases:
  k: {kind: quantiles, source: s, column: x, quantiles: [0.5], resolution: 1, bounds: [0, 9],
      epsilon: 0.1, expected_rows: 9000, schedule: {every: 1d}}
"""
GATE = (
    "gates: {g: {release: k, epsilon: 0.1, horizon: 9,"
    " test: {kind: drift, quantiles: [0.5], absolute: 9}}}\n"
)


@pytest.mark.parametrize("gate", ["", GATE])
def test_what_holds_a_job_is_found_at_once(tmp_path: Path, gate: str) -> None:
    """The page and `/metrics` ask it of every job, where a pass over the ledger took seconds."""
    (tmp_path / "config.yaml").write_text(GATED + gate)
    configuration = load(tmp_path / "config.yaml")

    def ask(store: SqliteStore, count: int) -> None:
        holds(configuration, store.database, "k", count, ())

    taken = _steps_after(tmp_path, ask)
    assert taken[160] < 1.1 * taken[40]


def test_a_round_asks_of_each_job_no_more_than_its_own(tmp_path: Path) -> None:
    """A thousand jobs that each read all rows of their source took seconds with nothing due."""

    def ask(store: SqliteStore, count: int) -> None:
        assert store.passed_over("s", "k") == frozenset()
        assert store.burns_in_a_row("s", "k") == (0, 0)
        assert store.gates.losses_in_a_row("k") == (0, 0)

    taken = _steps_after(tmp_path, ask)
    assert taken[160] < 1.1 * taken[40]


def test_a_look_at_the_next_run_costs_the_same_after_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It verifies the newest rows and the end of the anchor: `status --watch` does it again."""
    monkeypatch.setattr(verification, "NEWEST", 20)

    def ask(store: SqliteStore, count: int) -> None:
        anchor = default_anchor(tmp_path / str(count) / "s.db")
        assert newest_target(anchor) == state_of(store.database)
        assert verification.refusal(store.database, anchor, count, None) is None

    taken = _steps_after(tmp_path, ask)
    assert taken[160] < 1.1 * taken[40]


def test_the_newest_rows_are_verified_as_all_are(tmp_path: Path) -> None:
    """An altered row among them is found, and so is a sum that does not go on from before."""
    store, _, _ = _charged(tmp_path, PLAIN, 10)
    chain.verify(store.database, 7)
    database = store.database
    (head,) = database.execute("SELECT max(seq) FROM ledger").fetchone()
    database.execute("DROP TRIGGER ledger_keeps_values")
    for seq in range(head - 6, head + 1):
        for change in ("at = at + 1", "lifetime_spent_nano = lifetime_spent_nano + 1"):
            database.execute("SAVEPOINT before")
            database.execute(f"UPDATE ledger SET {change} WHERE seq = ?", [seq])
            with pytest.raises(IntegrityError, match=f"row {seq}"):
                chain.verify(database, 7)
            database.execute("ROLLBACK TO before")
    database.execute("UPDATE ledger SET lifetime_spent_nano = 1 WHERE seq = ?", [head - 7])
    with pytest.raises(IntegrityError, match=f"row {head - 6}"):
        chain.verify(database, 7)
    store.close()
