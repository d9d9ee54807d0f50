"""Releases of data in memory: those of the daemon, paid for by a ledger in memory."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import streamdp
from streamdp import wiring
from streamdp.backends.duckdb.records import RecordsBackend, backend_of_records
from streamdp.config import load
from streamdp.engine.ingest import due, ingest
from streamdp.engine.job import EngineContext
from streamdp.engine.release import prepare, release_batch
from streamdp.errors import (
    BudgetExhaustedError,
    ConfigurationError,
    InternalError,
    SourceError,
    StreamdpError,
)
from streamdp.kinds.spec import KINDS
from streamdp.library.release import draw_release
from streamdp.store.sqlite import SqliteStore
from streamdp.types import Json
from tests.kinds.cases import BODIES, CASES
from tests.worlds import EventLog, HandClock, ReplayedEntropy, World

ROOT = Path(__file__).parents[2]
CANARY = "kanarienvogel"
SELECTED: dict[str, Any] = {
    "kind": "selection",
    "among": {"conditions": {"low": "x < 3", "high": "x > 5"}},
}
QUARTILES: dict[str, Any] = {
    "kind": "quantiles",
    "column": "x",
    "quantiles": "quartiles",
    "resolution": 1,
    "bounds": [0, 99],
    "expected_rows": 300,
    "epsilon": 0.1,
}


def records(rows: int = 300, seed: int = 0) -> pa.Table:
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "x": chance.integers(0, 100, rows).astype(float),
            "y": chance.integers(0, 3, rows),
            "late": chance.random(rows) < 0.3,
            "city": chance.choice(["a", "b", "c"], rows),
            "region": chance.choice(["u", "v", "w"], rows),
            "who": chance.integers(0, 50, rows),
        }
    )


def options(body: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(f"{{{body}}}")
    return found


PURE = [(kind, body) for kind, body in CASES if kind != "keys"]
"""Kinds without a delta, which the ledger of a notebook has no cap for."""


@pytest.mark.parametrize("body", BODIES["keys"])
def test_a_kind_with_a_delta_is_refused(body: str) -> None:
    """By name, before records are read: the ledger has no cap on delta."""
    with pytest.raises(ConfigurationError, match="a ledger in memory has no cap on it"):
        streamdp.release(
            records(), kind="keys", epsilon="1/4", ledger=streamdp.Ledger(1), **options(body)
        )


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("kind", "body"), PURE)
def test_every_kind_can_be_released_of_units_and_groups_and_learned_from(
    kind: str, body: str
) -> None:
    """By its name, at its price, with the columns it declares, three times over."""
    ledger = streamdp.Ledger(1, unit={"name": "person", "column": "who", "rows": 2})
    groups: dict[str, Any] = {"by": "region", "groups": ["u", "v", "w"]}
    last = None
    for day in range(3):
        last = streamdp.release(
            records(seed=day),
            kind=kind,
            epsilon="1/4",
            ledger=ledger,
            previous=last,
            batch=f"2024-01-0{day + 1}",
            expected_rows=1000,
            **options(body),
            **groups,
        )
    assert last is not None
    assert last.learned.version == 3
    assert ledger.spent == 0.75
    assert {row["region"] for row in last.rows} == {"u", "v", "w"}
    assert set(last.table.rows[0]) <= {column.name for column in last.columns}
    assert last._repr_html_().startswith("<table>")


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("kind", "body"), PURE)
def test_it_is_the_release_that_the_daemon_makes(tmp_path: Path, kind: str, body: str) -> None:
    """With the same entropy: rows, event and learned state, of two batches."""
    for day in (1, 2):
        pq.write_table(records(seed=day), tmp_path / f"2024-01-0{day}.parquet")
    (tmp_path / "config.yaml").write_text(
        "store: {path: store.db}\n"
        "privacy: {unit: record, caps: {batch: 1, lifetime: 2}}\n"
        "sources: {data: {path: '*.parquet', batches: files, settle: 0s}}\n"
        f"releases: {{it: {{kind: {kind}, source: data, epsilon: 0.5, expected_rows: 300,"
        f" {body}}}}}\n"
    )
    configuration = load(tmp_path / "config.yaml")
    clock, job = HandClock(4_000_000_000), wiring.jobs(configuration)["it"]
    store = SqliteStore.open(configuration.store.path, clock.now())
    wiring.declare(configuration, store, clock.now(), EventLog())
    around = EngineContext(store, ReplayedEntropy(), clock, EventLog())
    entropy, ledger, last = ReplayedEntropy(), streamdp.Ledger(1), None
    arrived = ingest(job, store, clock.now(), EventLog()).batches
    for day, batch in enumerate(due(job, store, arrived), start=1):
        ready = prepare(job, batch, around)
        made = release_batch(job, batch, ready, around)
        given = {"kind": kind, "epsilon": 0.5, "expected_rows": 300, **options(body)}
        last = draw_release(records(seed=day), given, ledger, last, batch.key, entropy)
        assert last.rows == made.rows
        assert last.id == made.id
        assert last.charge == ready.charge
    assert last is not None
    assert store.learned("it") == last.learned


def test_more_than_the_ledger_has_is_refused_before_data_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To the last 1e-9: three times a third fits into 1.000000002, since a third is rounded up."""
    asked: list[str] = []
    answer = RecordsBackend.answer

    def answered(*given: Any) -> Any:
        asked.append("read")
        return answer(*given)

    monkeypatch.setattr(RecordsBackend, "answer", answered)
    for cap, fits in (("1.000000002", 3), (1, 2)):
        ledger, asked[:] = streamdp.Ledger(cap), []
        for _ in range(fits):
            streamdp.release(records(), ledger=ledger, **QUARTILES | {"epsilon": "1/3"})
        with pytest.raises(BudgetExhaustedError, match=r"costs 0\.333333334"):
            streamdp.release(records(), ledger=ledger, **QUARTILES | {"epsilon": "1/3"})
        assert (len(asked), len(ledger.entries)) == (fits, fits)


def test_a_unit_with_many_records_counts_with_as_many_as_it_may() -> None:
    """A thousand records of one unit draw as two do, and records without a unit as none."""
    given = {"kind": "statistics", "measures": {"n": "count"}, "epsilon": 0.5}
    found = []
    for own, nobody in ((2, 0), (1000, 0), (1000, 50)):
        people = pa.array([*range(9), *[99] * own, *[None] * nobody])
        ledger = streamdp.Ledger(1, unit={"name": "person", "column": "who", "rows": 2})
        data = pa.table({"who": people})
        found.append(draw_release(data, given, ledger, None, "1", ReplayedEntropy()).rows)
    assert found[0] == found[1] == found[2]


def test_a_ledger_may_count_zero_concentrated_loss() -> None:
    """With delta many small releases cost less than their sum."""
    pure, concentrated = streamdp.Ledger(0.5), streamdp.Ledger(0.5, delta=1e-6)
    given = QUARTILES | {"epsilon": 0.05, "prior": {"learner": "none"}}
    for _ in range(12):
        streamdp.release(records(9), ledger=concentrated, **given)
    assert sum(float(row["epsilon"]) for row in concentrated.entries) > 0.5
    for _ in range(10):
        streamdp.release(records(9), ledger=pure, **given)
    with pytest.raises(BudgetExhaustedError):
        streamdp.release(records(9), ledger=pure, **given)


def test_a_failure_after_the_charge_stays_spent_and_tells_nothing() -> None:
    """A relation whose last record cannot be cast fails while it is read."""
    connection = duckdb.connect()
    relation = connection.sql(
        "SELECT CAST(CASE WHEN range = 70000 THEN"
        f" '{CANARY}' ELSE '7' END AS INTEGER) AS x FROM range(70001)"
    )
    ledger = streamdp.Ledger(1)
    with pytest.raises(SourceError) as caught:
        streamdp.release(relation, ledger=ledger, **QUARTILES)
    assert CANARY not in f"{caught.value}{caught.value!r}{caught.value.fields}"
    assert ledger.spent == 0.1
    assert [row["state"] for row in ledger.entries] == ["burnt"]


def test_an_unexpected_error_or_an_interrupt_stays_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of foreign errors nothing is told; an interrupt goes through."""
    ends: list[tuple[BaseException, type[BaseException]]] = [
        (RuntimeError(CANARY), InternalError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ]
    for raised, seen in ends:
        ledger = streamdp.Ledger(1)

        def fail(*given: Any, error: BaseException = raised) -> Any:
            raise error

        monkeypatch.setattr(RecordsBackend, "answer", fail)
        with pytest.raises(seen) as caught:
            streamdp.release(records(), ledger=ledger, **QUARTILES)
        assert CANARY not in str(caught.value)
        assert ledger.spent == 0.1
        assert [row["state"] for row in ledger.entries] == ["burnt"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"bounds": [9, 0]},
        {"resolution": 0},
        {"epsilon": -1},
        {"epsilon": 21},
        {"colum": "x"},
        {"column": {"sql": "sum(x)"}},
        {"where": "x > (SELECT 1)"},
        {"by": "y"},
        {"kind": "quantile"},
    ],
    ids=str,
)
def test_options_are_refused_as_in_a_configuration(tmp_path: Path, wrong: Json) -> None:
    """In the same words, with the argument in place of the line; nothing is spent."""
    section = {**QUARTILES, "source": "data", **wrong}
    whole = {
        "store": {"path": "store.db"},
        "privacy": {"unit": "record", "caps": {"batch": 100, "lifetime": 100}},
        "sources": {"data": {"path": "data.arrow", "batches": "files"}},
        "releases": {"release": section},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(whole))
    with pytest.raises(ConfigurationError) as configured:
        load(tmp_path / "config.yaml")
    ledger = streamdp.Ledger(100)
    with pytest.raises(ConfigurationError) as called:
        streamdp.release(records(), ledger=ledger, **{**QUARTILES, **wrong})
    assert (called.value.what, called.value.hint) == (configured.value.what, configured.value.hint)
    assert called.value.where.startswith("release(")
    assert ledger.spent == 0


@pytest.mark.parametrize("name", ["gate", "schedule", "sinks", "source"])
def test_what_belongs_to_a_daemon_is_refused(name: str) -> None:
    """A gate that was passed over would be a release that nobody asked for."""
    with pytest.raises(ConfigurationError, match="belongs to a configuration"):
        streamdp.release(records(), ledger=streamdp.Ledger(1), **QUARTILES | {name: None})


def test_no_kind_has_a_key_that_release_takes_for_itself() -> None:
    """It could not be given."""
    for spec in KINDS.all():
        assert not {"data", "ledger", "previous", "batch"} & set(spec.section.model_fields)


def test_previous_is_of_the_same_section() -> None:
    """What was learned of another column is refused; another epsilon is not."""
    ledger = streamdp.Ledger(1)
    first = streamdp.release(records(), ledger=ledger, **QUARTILES)
    with pytest.raises(ConfigurationError, match="another section"):
        streamdp.release(records(), ledger=ledger, previous=first, **QUARTILES | {"column": "y"})
    assert ledger.spent == 0.1
    again = QUARTILES | {"epsilon": Fraction(1, 5)}
    assert streamdp.release(records(), ledger=ledger, previous=first, **again).epsilon == 0.2


@pytest.mark.long
def test_previous_makes_the_next_more_accurate() -> None:
    """Days of one law under a bad guess, which what is learned makes up for."""
    rows = np.random.default_rng(1).normal(5000, 300, 300).round()
    truth = np.quantile(rows, [0.25, 0.5, 0.75])
    guess = {"location": 3000, "scale": 3000}
    given = QUARTILES | {"bounds": [0, 20_000], "expected_rows": 300, "guess": guess}
    ledger, learned, fresh = streamdp.Ledger(8), [], []
    last: streamdp.Released | None = None
    for day in range(20):
        entropy = ReplayedEntropy(str(day))
        alone = draw_release(rows, given, ledger, None, str(day), entropy)
        entropy = ReplayedEntropy(str(day))
        last = draw_release(rows, given, ledger, last, str(day), entropy)
        learned.append(np.abs([float(row["value"] or 0) for row in last.rows] - truth).sum())
        fresh.append(np.abs([float(row["value"] or 0) for row in alone.rows] - truth).sum())
    assert sum(learned[10:]) < 0.5 * sum(fresh[10:])


def forms(name: str, values: Any) -> dict[str, Any]:
    connection = duckdb.connect()
    table = pa.table({name: values})
    quoted = name.replace('"', '""')
    made = f'CREATE TABLE t AS SELECT unnest(?::DOUBLE[]) AS "{quoted}"'
    connection.execute(made, [values.tolist()])
    return {
        "array": values,
        "masked array": np.ma.masked_array(
            np.append(values, 98.0), mask=[*[False] * len(values), True]
        ),
        "mapping": {name: values, "other": values.astype(str)},
        "list": values.tolist(),
        "arrow": table,
        "chunked": pa.concat_tables([table.slice(0, 10), table.slice(10)]),
        "pandas": table.to_pandas(),
        "polars": __import__("polars").from_arrow(table),
        "relation": connection.table("t"),
        "query": connection.sql("SELECT * FROM t UNION ALL SELECT NULL"),
    }


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", ["x", 'a"; DROP TABLE t; --', "ü ' \\ {x}", "SELECT", "a.b", " "])
def test_all_forms_of_data_and_all_names_of_columns_count_alike(name: str) -> None:
    """The same entropy draws the same from each."""
    values = np.random.default_rng(2).integers(0, 99, 300).astype(float)
    found = {
        form: draw_release(
            data, QUARTILES | {"column": name}, streamdp.Ledger(1), None, "1", ReplayedEntropy()
        ).rows
        for form, data in forms(name, values).items()
    }
    assert {str(rows) for rows in found.values()} == {str(found["array"])}, found


@pytest.mark.parametrize(
    "data",
    [
        np.array([1, CANARY, 2.5, object()], dtype=object),
        [1, [2, 3]],
        {"x": [1.0, 2.0], "y": [CANARY]},
        {"x": np.ones((2, 2))},
        {},
        CANARY,
        {"y": np.ones(3)},
        {"x": np.array([CANARY])},
        pa.table({"x": pa.array([[1.0]])}),
        pa.table([pa.array([1.0]), pa.array([2.0])], names=["x", "X"]),
    ],
    ids=range(10),
)
def test_what_is_no_column_of_numbers_is_refused_for_nothing(data: Any) -> None:
    """The error quotes no value."""
    ledger = streamdp.Ledger(1)
    with pytest.raises(StreamdpError) as caught:
        streamdp.release(data, ledger=ledger, **QUARTILES)
    assert not isinstance(caught.value, InternalError)
    assert CANARY not in str(caught.value)
    assert ledger.spent == 0


def test_nothing_that_is_shown_holds_a_record() -> None:
    """A marked value is in no repr of a release, a ledger, or what reads the data."""
    data = pa.table({"x": [7.0] * 9, "city": [CANARY] * 9})
    ledger = streamdp.Ledger(1)
    made = streamdp.release(data, ledger=ledger, **QUARTILES)
    backend = backend_of_records(data, "x")
    shown = [made, ledger, ledger.entries, made.table, backend, getattr(backend, "records", None)]
    assert CANARY not in "".join(map(repr, shown)) + made._repr_html_()
    assert CANARY not in str(made.learned) + str(made.charge)


def test_the_notebook_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code, over the flights that are shipped and a store without releases of that job."""
    page = (ROOT / "deploy" / "docs" / "how-to" / "notebook.md").read_text()
    code = "".join(part.split("```")[0] for part in page.split("```python\n")[1:])
    monkeypatch.chdir(tmp_path)
    World(tmp_path, days=1).store.close()
    (tmp_path / "store.db").rename(tmp_path / "streamdp.db")
    (tmp_path / "flights.parquet").symlink_to(ROOT / "streamdp" / "demo" / "flights.parquet")
    around: dict[str, Any] = {}
    with pytest.raises(StreamdpError, match="no releases of 'air_time'"):
        exec(code, around)  # noqa: S102
    lines = [line for line in code.splitlines() if "store" not in line]
    exec("\n".join(lines), around)  # noqa: S102
    assert around["ledger"].spent == 0.3
    assert len(around["last"].rows) == 9


def test_a_ledger_is_not_copied_and_not_charged_by_another_process() -> None:
    """Each copy could spend all of it."""
    ledger = streamdp.Ledger(1)
    for multiply in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            multiply(ledger)
    ledger._process += 1
    with pytest.raises(ConfigurationError, match="another process"):
        streamdp.release(records(), ledger=ledger, **QUARTILES)


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({}, "Ledger()"),
        ({"epsilon": 0}, "Ledger(epsilon)"),
        ({"epsilon": 1, "delta": 2}, "Ledger()"),
        ({"epsilon": 1, "unit": {"name": "p", "rows": 2}}, "Ledger(unit)"),
        ({"epsilon": 1, "neighbours": "both"}, "Ledger(neighbours)"),
    ],
)
def test_a_ledger_that_means_nothing_is_refused(wrong: Json, place: str) -> None:
    """With the argument."""
    with pytest.raises(ConfigurationError) as caught:
        streamdp.Ledger(**wrong)
    assert caught.value.where == place


def test_importing_streamdp_imports_nothing_that_is_slow() -> None:
    """Nothing at all beyond the module and its version, until a name is used."""
    code = (
        "import sys; before = set(sys.modules); import streamdp\n"
        "assert set(sys.modules) - before <= {'streamdp', 'streamdp.version', '__future__'}\n"
        "assert set(streamdp.__all__) <= set(dir(streamdp))\n"
        "assert all(getattr(streamdp, name) for name in streamdp.__all__)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        streamdp.nothing  # noqa: B018


COUNTED: dict[str, Any] = {"kind": "statistics", "measures": {"rows": "count"}, "rho": "1/500"}


def test_a_price_in_rho_is_paid_by_a_ledger_in_rho() -> None:
    """Counts with Gaussian noise beside quantiles that are paid in epsilon."""
    ledger = streamdp.Ledger(epsilon=1, delta=1e-9)
    released = streamdp.release(records(), **COUNTED, ledger=ledger)
    assert (released.epsilon, released.rho) == (None, 0.002)
    streamdp.release(records(), **QUARTILES, ledger=ledger)
    first, second = ledger.entries
    assert (first["epsilon"], first["rho"], second["epsilon"]) == ("no bound", "0.002", "0.1")
    assert ledger.spent == pytest.approx(0.002 + float(second["rho"]))
    with pytest.raises(BudgetExhaustedError, match="rho left, this release costs"):
        streamdp.release(records(), **COUNTED | {"rho": 0.1}, ledger=ledger)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (COUNTED, "paid in rho, and the lifetime cap is in pure epsilon"),
        (COUNTED | {"epsilon": 0.1}, "one price"),
        (COUNTED | {"rho": None}, "epsilon is missing"),
        (SELECTED | {"rho": 0.1}, "selection have no Gaussian noise"),
    ],
)
def test_a_price_that_is_none_costs_nothing(options: dict[str, Any], why: str) -> None:
    """A ledger in pure epsilon, two prices, no price, a kind without Gaussian noise."""
    ledger = streamdp.Ledger(epsilon=1)
    with pytest.raises(ConfigurationError, match=why):
        streamdp.release(records(), **options, ledger=ledger)
    assert ledger.spent == 0


def test_a_column_that_cannot_be_read_is_named() -> None:
    """A frame with a column of mixed values: its name is public, its values are not shown."""
    data = {"x": np.arange(9.0), "odd": np.array([1, CANARY] * 4 + [1], dtype=object)}
    with pytest.raises(SourceError, match="column 'odd' of these data") as caught:
        streamdp.release(data, **QUARTILES, ledger=streamdp.Ledger(epsilon=1))
    assert CANARY not in str(caught.value)
