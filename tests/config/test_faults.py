"""Every bad value is refused when the file is loaded, at its own line, with what to do."""

import re
from pathlib import Path

import pytest

from streamdp.config import load
from streamdp.errors import ConfigurationError

GOOD = """\
store: {path: s.db}
privacy:
  unit: flight
  caps: {batch: 0.3, lifetime: 60}
sources:
  flights:
    path: flights.parquet
    batches: {column: date, every: 1d, start: 2013-01-01}
releases:
  air_time:
    kind: quantiles
    source: flights
    column: air_time
    quantiles: [0.25, 0.5, 0.75]
    resolution: 1
    bounds: [0, 1000]
    guess: {location: 120, scale: 60}
    epsilon: 0.1
    schedule: {cron: "0 6 * * *"}
    prior: {learner: last-release, robust: cauchy}
    sinks: [file]
sinks:
  file: {kind: jsonl, path: out.jsonl}
log: {path: s.log, rotate: {size: 10 MB, keep: 5}}
"""

HOOK_AT = "sinks:\n  file: {kind: jsonl, path: out.jsonl}"
KEY = "'a literal secret of some length'"

FAULTS = [
    # row 13: degenerate priors
    ("robust: cauchy", "robust: {family: cauchy, location: 0, scale: 0}", "prior.robust"),
    ("robust: cauchy", "robust: {family: cauchy, location: 0, scale: -1}", "prior.robust"),
    ("robust: cauchy", "robust: {family: cauchy, location: .nan, scale: 1}", "prior.robust"),
    ("robust: cauchy", "robust: {family: laplace, location: 0, scale: 1e-300}", "prior.robust"),
    ("robust: cauchy", "robust: {family: uniform, lower: 10, upper: 20}", "prior.robust"),
    ("robust: cauchy", "robust: {family: half-cauchy, location: 1, scale: 9}", "prior.robust"),
    ("robust: cauchy", "robust: half-cauchy", "prior.robust"),
    ("robust: cauchy", "robust: {mixture: []}", "prior.robust"),
    ("robust: cauchy", "robust: couchy", "prior.robust"),
    ("robust: cauchy", "robust_weight: 0.001", "prior.robust_weight"),
    ("robust: cauchy", "robust_weight: 1.5", "prior.robust_weight"),
    # a prior made of the records it is a prior of
    ("robust: cauchy", "public: {path: flights.parquet}", "prior.public.path"),
    ("robust: cauchy", "public: {path: ./x/../flights.parquet}", "prior.public.path"),
    ("robust: cauchy", "table: {path: flights.parquet, key: k, columns: [a]}", "prior.table.path"),
    ("robust: cauchy", "public: {path: rows.csv}", "prior.public"),
    ("robust: cauchy", "table: {path: facts, key: k, columns: [a]}", "prior.table.path"),
    ("robust: cauchy", "table: {path: facts.csv, key: k, columns: []}", "prior.table.columns"),
    # a gradient that nobody learns from, or that leaves nothing to the release
    ("robust: cauchy", "private_gradient: 0.2", "prior.private_gradient"),
    ("learner: last-release", "private_gradient: 0.2", "prior.private_gradient"),
    ("last-release", "online-gradient, private_gradient: 0", "prior.private_gradient"),
    ("last-release", "online-gradient, private_gradient: 1", "prior.private_gradient"),
    ("last-release", "online-gradient, private_gradient: .nan", "prior.private_gradient"),
    ("last-release", "online-gradient, private_gradient: true", "prior.private_gradient"),
    ("last-release", "online-gradient, private_gradient: 0.999999", "epsilon"),
    ("last-release", "online-gradient, private_gradient: 0.000001", "epsilon"),
    ("scale: 60", "scale: 0", "guess.scale"),
    ("scale: 60", "scale: 1e-300", "guess.scale"),
    ("scale: 60", "scale: .inf", "guess.scale"),
    # row 16: targets
    ("[0.25, 0.5, 0.75]", "[0.5, 0.25]", "quantiles"),
    ("[0.25, 0.5, 0.75]", "[0.5, 0.5]", "quantiles"),
    ("[0.25, 0.5, 0.75]", "[0, 0.5]", "quantiles"),
    ("[0.25, 0.5, 0.75]", "[0.5, 1]", "quantiles"),
    ("[0.25, 0.5, 0.75]", "[0.5, 1.5]", "quantiles"),
    ("[0.25, 0.5, 0.75]", "[]", "quantiles"),
    ("[0.25, 0.5, 0.75]", "decile", "quantiles"),
    ("[0.25, 0.5, 0.75]", "[0.123456]", "quantiles"),
    ("[0.25, 0.5, 0.75]", "[1/0]", "quantiles"),
    # row 17: epsilon and caps
    ("epsilon: 0.1", "epsilon: 0", "epsilon"),
    ("epsilon: 0.1", "epsilon: -1", "epsilon"),
    ("epsilon: 0.1", "epsilon: .nan", "epsilon"),
    ("epsilon: 0.1", "epsilon: .inf", "epsilon"),
    ("epsilon: 0.1", "epsilon: 1e-400", "epsilon"),
    ("epsilon: 0.1", 'epsilon: "1e-400"', "epsilon"),
    ("epsilon: 0.1", 'epsilon: "1e-999999999"', "epsilon"),
    ("epsilon: 0.1", 'epsilon: "1e999999999"', "epsilon"),
    ("epsilon: 0.1", "epsilon: 0.0000001", "epsilon"),
    ("epsilon: 0.1", "epsilon: 1000000000", "epsilon"),
    ("epsilon: 0.1", "epsilon: true", "epsilon"),
    ("epsilon: 0.1", "epsilon: 0.31", "caps.batch"),
    ("batch: 0.3", "batch: 0", "caps.batch"),
    ("batch: 0.3", "batch: 61", "caps.batch"),
    ("lifetime: 60", "lifetime: 60, windows: [{batches: 7}]", "caps.windows"),
    ("lifetime: 60", "lifetime: 60, windows: [{epsilon: 1}]", "caps.windows"),
    ("lifetime: 60", "lifetime: 60, windows: [{batches: 0, epsilon: 1}]", "batches"),
    ("lifetime: 60", "lifetime: 60, windows: [{batches: 7.5, epsilon: 1}]", "batches"),
    ("lifetime: 60", "lifetime: 60, windows: [{batches: 7, time: 1d, epsilon: 1}]", "windows"),
    ("lifetime: 60", "lifetime: 60, windows: [{time: 30, epsilon: 1}]", "time"),
    ("lifetime: 60", "lifetime: 60, windows: [{time: 1d, epsilon: 1, rho: 1}]", "windows"),
    ("lifetime: 60", "lifetime: 60, windows: [{time: 1d, epsilon: 1, delta: 1}]", "windows"),
    ("lifetime: 60", "lifetime: 60, windows: [{time: 1d, rho: 1, delta: 0.1}]", "windows"),
    ("lifetime: 60", "lifetime: 60, windows: [{time: 1d, rho: 1e-20}]", "windows"),
    ("lifetime: 60", "lifetime: 60, windows: [{batches: 7, epsilon: 0.09}]", "caps.windows"),
    # caps and prices in rho
    ("lifetime: 60", "lifetime: {rho: 1}", "privacy.caps"),
    ("batch: 0.3", "batch: {rho: 0.3}", "privacy.caps"),
    ("{batch: 0.3, lifetime: 60}", "{batch: {rho: 2}, lifetime: {rho: 1}}", "caps.batch"),
    ("{batch: 0.3, lifetime: 60}", "{batch: {rho: 0}, lifetime: {rho: 1}}", "caps.batch.rho"),
    ("{batch: 0.3, lifetime: 60}", "{batch: {rho: 1e-20}, lifetime: {rho: 1}}", "caps.batch"),
    ("{batch: 0.3, lifetime: 60}", "{batch: {}, lifetime: {rho: 1}}", "caps.batch"),
    ("{batch: 0.3, lifetime: 60}", "{batch: {epsilon: 1}, lifetime: {rho: 1}}", "caps.batch"),
    ("{batch: 0.3, lifetime: 60}", "{batch: {rh: 1}, lifetime: {rho: 1}}", "caps.batch.rh"),
    (
        "{batch: 0.3, lifetime: 60}",
        "{batch: {rho: 1, delta: 1e-9}, lifetime: {rho: 1}}",
        "caps.batch",
    ),
    (
        "{batch: 0.3, lifetime: 60}",
        "{batch: {epsilon: 1, delta: 1}, lifetime: {rho: 1}}",
        "caps.batch",
    ),
    ("epsilon: 0.1", "rho: 0.1", "releases.air_time.rho"),  # under caps in pure epsilon
    ("epsilon: 0.1", "epsilon: 0.1\n    rho: 0.1", "air_time"),
    ("epsilon: 0.1", "rho: 0", "air_time.rho"),
    ("unit: flight", "unit: flight\n  allow_large_epsilon: yes", "allow_large_epsilon"),
    ("unit: flight", "unit: flight\n  neighbours: substitude", "neighbours"),
    ("every: 1d", "every: 30s", "batches.every"),
    (
        "prior: {learner: last-release,",
        "mechanism: {node: joint}\n    expected_rows: 9\n    prior: {learner: mixture,",
        "air_time",
    ),
    # row 20: trees that cannot be
    ("epsilon: 0.1", "epsilon: 0.1\n    mechanism: {branching: 5}", "air_time"),
    ("epsilon: 0.1", "epsilon: 0.1\n    mechanism: {branching: 1}", "mechanism.branching"),
    ("epsilon: 0.1", "epsilon: 0.1\n    mechanism: {shapes: true}", "mechanism"),
    (
        "epsilon: 0.1",
        "epsilon: 0.1\n    mechanism: {node: joint, restriction: edge}",
        "mechanism",
    ),
    ("epsilon: 0.1", "epsilon: 0.1\n    mechanism: fast", "mechanism"),
    ("epsilon: 0.1", "epsilon: 0.1\n    expected_rows: 0", "expected_rows"),
    # row 20: too many targets, too many cells
    ("[0.25, 0.5, 0.75]", f"[{', '.join(f'{i}/1001' for i in range(1, 1001))}]", "quantiles"),
    ("resolution: 1", "resolution: 0", "resolution"),
    ("resolution: 1", "resolution: 1e-14", "air_time"),
    ("bounds: [0, 1000]", "bounds: [1000, 0]", "air_time"),
    # rows 52, 53: batches by count, records compared across batches
    ("{column: date, every: 1d, start: 2013-01-01}", "{rows: 1000}", "batches"),
    ("{column: date, every: 1d, start: 2013-01-01}", "1000", "batches"),
    ("every: 1d", "every: 1000", "batches"),
    ("every: 1d", "every: 0d", "batches"),
    ("start: 2013-01-01", "start: 2013-02-30", "batches"),
    ("start: 2013-01-01", "start: 2013-01-01, end: 2013-01-01", "batches"),
    ("path: flights.parquet", "path: flights.parquet\n    dedup: true", "dedup"),
    # cron, which schedulers read differently
    ("0 6 * * *", "0 0 31 2 *", "schedule"),
    ("0 6 * * *", "0 0 1 * 1", "schedule"),
    ("0 6 * * *", "0 0 * *", "schedule"),
    ("0 6 * * *", "61 0 * * *", "schedule"),
    ("0 6 * * *", "0 0 * * 8", "schedule"),
    ("0 6 * * *", "0 0 * * */2", "schedule"),
    ('{cron: "0 6 * * *"}', "{cron: 0 6 * * *, every: 1h}", "schedule"),
    # names, files and tables
    ("source: flights", "source: flight", "source"),
    ("sinks: [file]", "sinks: [fiel]", "sinks"),
    ("path: flights.parquet", "path: flights.xlsx", "sources.flights.path"),
    ("kind: jsonl, path: out.jsonl", "kind: table, table: ledger", "sinks.file"),
    ("kind: jsonl, path: out.jsonl", "kind: table, table: a b", "sinks.file"),
    # rows 49, 54: units of several records
    ("unit: flight", "unit: {name: plane, rows: 4}", "privacy.unit"),
    ("unit: flight", "unit: {name: plane, column: tail, rows: 0}", "unit.rows"),
    ("unit: flight", "unit: {name: plane, column: tail, rows: 1001}", "unit.rows"),
    ("unit: flight", "unit: {name: plane, column: tail, rows: 2.0}", "unit.rows"),
    ("unit: flight", "unit: {name: plane, colum: tail}", "unit.colum"),
    ("unit: flight", "unit: ''", "privacy.unit"),
    # expressions that read across records, groups that are not public
    ("column: air_time", "column: {sql: avg(air_time)}", "column.sql"),
    ("column: air_time", "column: {sql: 'a, b'}", "column.sql"),
    ("column: air_time", "column: {sq: a}", "column.sq"),
    ("resolution: 1", "resolution: 1\n    where: x > (SELECT 1)", "air_time.where"),
    ("resolution: 1", "resolution: 1\n    where: rank() OVER () < 9", "air_time.where"),
    ("resolution: 1", "resolution: 1\n    by: origin", "air_time"),
    ("resolution: 1", "resolution: 1\n    by: origin\n    groups: all", "air_time.groups"),
    ("resolution: 1", "resolution: 1\n    groups: [JFK]", "air_time"),
    ("resolution: 1", "resolution: 1\n    by: origin\n    groups: [JFK, JFK]", "air_time"),
    ("resolution: 1", "resolution: 1\n    by: origin\n    groups: [[JFK, B6]]", "air_time"),
    ("resolution: 1", "resolution: 1\n    by: origin\n    groups: [1.5]", "air_time.groups"),
    ("resolution: 1", "resolution: 1\n    by: value\n    groups: [1]", "air_time"),
    # webhooks and their secrets
    (HOOK_AT, f"{HOOK_AT}\n  h: {{kind: webhook, url: 'https://a.b', secret: s}}", "h.secret"),
    (HOOK_AT, f"{HOOK_AT}\n  h: {{kind: webhook, url: 'http://a.b', secret: {KEY}}}", "h.url"),
    (HOOK_AT, f"{HOOK_AT}\n  h: {{kind: webhook, url: 'https://u:p@a.b', secret: {KEY}}}", "h.url"),
    (HOOK_AT, f"{HOOK_AT}\n  h: {{kind: webhook, url: 'ftp://a.b', secret: {KEY}}}", "h.url"),
    (HOOK_AT, f"{HOOK_AT}\n  h: {{kind: webhook, url: 'https://a.b', secret: {KEY}}}", "h.secret"),
    (HOOK_AT, f"{HOOK_AT}\n  h: {{kind: webhook, url: 'https://a.b', secret: 1}}", "h.secret"),
    ("keep: 5", "keep: 010", "keep"),
    ("keep: 5", "keep: 0", "keep"),
    ("10 MB", "10", "size"),
    ("kind: quantiles", "kind: quantiles\n    epsilom: 1", "epsilom"),
    ("unit: flight", "unit: flight\n  unit: plane", "unit"),
]


def loaded(folder: Path, text: str, environment: dict[str, str] | None = None) -> object:
    file = folder / "config.yaml"
    file.write_text(text)
    return load(file, environment or {})


def test_the_base_of_the_table_is_good(tmp_path: Path) -> None:
    """Without a fault the file loads, else every row below would pass for nothing."""
    loaded(tmp_path, GOOD)


@pytest.mark.parametrize(("good", "bad", "where"), FAULTS, ids=[bad[:50] for _, bad, _ in FAULTS])
def test_a_fault_is_refused_at_its_place(tmp_path: Path, good: str, bad: str, where: str) -> None:
    """The error names file, line and column, and the path of the key."""
    assert GOOD.count(good) == 1
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, GOOD.replace(good, bad))
    assert re.search(rf"config\.yaml:\d+:\d+ \S*{re.escape(where)}", str(caught.value))


def test_one_file_under_two_names_is_refused(tmp_path: Path) -> None:
    """A second name for the same records would be a second budget for them."""
    (tmp_path / "flights.parquet").write_bytes(b"")
    (tmp_path / "alias.parquet").symlink_to("flights.parquet")
    other = "  other: {path: ./alias.parquet, batches: files}\nreleases:\n"
    with pytest.raises(ConfigurationError, match="same data"):
        loaded(tmp_path, GOOD.replace("releases:\n", other))


@pytest.mark.parametrize("path", ["'*.parquet'", "./fl*.parquet"])
def test_a_pattern_that_takes_in_another_source_is_refused(tmp_path: Path, path: str) -> None:
    """A glob over the file of another source would give its records a second budget."""
    other = f"  other: {{path: {path}, batches: files}}\nreleases:\n"
    with pytest.raises(ConfigurationError, match="same data"):
        loaded(tmp_path, GOOD.replace("releases:\n", other))


OWN = [
    "s.db",
    "./s.log",
    "flights.parquet",
    "s.db-wal",
    "s.db.lock",
    "s.db.turn",
    "s.db.pulse",
    "s.db.anchor",
    "s.log.3",
]


@pytest.mark.parametrize("path", [*OWN, "s.db.schema-3.17", "config.yaml"])
@pytest.mark.parametrize("kind", ["kind: jsonl", "kind: duckdb, table: t"])
def test_a_sink_cannot_write_over_store_log_or_source(tmp_path: Path, path: str, kind: str) -> None:
    """A line appended to the store would destroy the ledger."""
    with pytest.raises(ConfigurationError, match=r"sinks\.file"):
        loaded(tmp_path, GOOD.replace("kind: jsonl", kind).replace("out.jsonl", path))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_folder_of_files_is_not_one_that_a_source_reads(tmp_path: Path, kind: str) -> None:
    """A release that became a batch would be released again."""
    text = GOOD.replace("kind: jsonl, path: out.jsonl", f"kind: {kind}, path: data/out")
    text = text.replace("path: flights.parquet", f"path: 'data/**/*.{kind}'")
    with pytest.raises(ConfigurationError, match="reads this file"):
        loaded(tmp_path, text)


def test_sinks_may_share_a_database(tmp_path: Path) -> None:
    """Two tables of one database are two sinks."""
    two = (
        "{kind: duckdb, path: w.duckdb, table: a}\n  more: {kind: duckdb, path: w.duckdb, table: b}"
    )
    loaded(tmp_path, GOOD.replace("{kind: jsonl, path: out.jsonl}", two))


def test_prices_of_one_source_add_up(tmp_path: Path) -> None:
    """Two releases of one batch must fit its cap together, exactly."""
    first = GOOD[GOOD.index("  air_time:") : GOOD.index("sinks:\n")]
    fits, breaks = (
        GOOD.replace(
            "sinks:\n", first.replace("air_time:", "again:").replace("0.1", price) + "sinks:\n"
        )
        for price in ("0.2", "0.200001")
    )
    loaded(tmp_path, fits)
    with pytest.raises(ConfigurationError, match="cap"):
        loaded(tmp_path, breaks)


def test_an_unknown_key_is_told_its_nearest(tmp_path: Path) -> None:
    """A slip of the finger is named, with the key that was meant."""
    with pytest.raises(
        ConfigurationError, match=r"config\.yaml:18:5 .*(?s:.)*did you mean 'epsilon'"
    ):
        loaded(tmp_path, GOOD.replace("epsilon: 0.1", "epsilom: 0.1\n    epsilon: 0.1"))


def test_several_problems_are_told_together(tmp_path: Path) -> None:
    """One run shows all values that cannot be read."""
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, GOOD.replace("epsilon: 0.1", "epsilon: 0").replace("10 MB", "10"))
    assert "releases.air_time.epsilon" in str(caught.value)
    assert "log.rotate.size" in str(caught.value)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("epsilon: 0.1", "epsilon: ${SECRET}"),
        ("location: 120", "location: ${SECRET}"),
        ("every: 1d", "every: ${SECRET}"),
        ("source: flights", "source: ${SECRET}"),
        ("quantiles: [0.25, 0.5, 0.75]", "quantiles: ${SECRET}"),
        ("0 6 * * *", "${SECRET}"),
    ],
)
def test_a_variable_is_never_shown(tmp_path: Path, good: str, bad: str) -> None:
    """An error tells the place of a value that came from the environment, not the value."""
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, GOOD.replace(good, bad), {"SECRET": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_an_unset_variable_is_named_with_its_place(tmp_path: Path) -> None:
    """No silent empty text."""
    with pytest.raises(ConfigurationError, match="NOBODY") as caught:
        loaded(tmp_path, GOOD.replace("s.db", '"${NOBODY}"'))
    assert "config.yaml:1:" in str(caught.value)


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: [", "\x00", "- 1", "", "just text"])
def test_what_is_no_configuration_is_refused(tmp_path: Path, text: str) -> None:
    """Whatever the file holds, the error is one a person can read."""
    with pytest.raises(ConfigurationError):
        loaded(tmp_path, text)


HOOK = f"{HOOK_AT}\n  h: {{kind: webhook, url: '${{URL}}', secret: '${{KEY}}'}}"


def test_a_secret_comes_from_the_environment_and_is_in_no_repr(tmp_path: Path) -> None:
    """It loads, and neither the configuration as text nor its dump shows it."""
    known = {"URL": "https://hooks.example/T0PSECRET", "KEY": "T0PSECRET of some length"}
    found = loaded(tmp_path, GOOD.replace(HOOK_AT, HOOK), known)
    assert "T0PSECRET" not in repr(found)


@pytest.mark.parametrize("name", ["URL", "KEY"])
def test_a_bad_secret_is_refused_without_being_shown(tmp_path: Path, name: str) -> None:
    """The place and the rule, not the text."""
    known = {"URL": "https://hooks.example/T0PSECRET", "KEY": "T0PSECRET of some length"}
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, GOOD.replace(HOOK_AT, HOOK), known | {name: "T0PSECRET"})
    assert "T0PSECRET" not in str(caught.value)
    assert re.search(r"config\.yaml:24:\d+ sinks\.h\.", str(caught.value))


def test_groups_of_a_relation_they_do_not_hold_for(tmp_path: Path) -> None:
    """Under substitution a record may change its group, which costs twice."""
    text = GOOD.replace("unit: flight", "unit: flight\n  neighbours: substitute")
    text = text.replace("resolution: 1", "resolution: 1\n    by: origin\n    groups: [JFK]")
    with pytest.raises(ConfigurationError, match=r"air_time\.by: groups need neighbours"):
        loaded(tmp_path, text)


def test_data_defined_groups_are_refused_with_the_reason(tmp_path: Path) -> None:
    """The exact words a person sees."""
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, GOOD.replace("resolution: 1", "resolution: 1\n    by: origin"))
    assert str(caught.value) == (
        "config.yaml:10:3 releases.air_time: groups must be a public list, or {from: JOB, most:"
        " 50}, where JOB is a release of kind keys: groups read off the data would tell who is"
        " there"
    )


def test_an_aggregate_is_refused_at_its_line(tmp_path: Path) -> None:
    """The exact words a person sees."""
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, GOOD.replace("column: air_time", "column: {sql: avg(air_time)}"))
    assert str(caught.value) == (
        "config.yaml:13:14 releases.air_time.column.sql:"
        " avg is an aggregate: it reads other records"
    )


COUNTED = """\
store: {path: s.db}
privacy: {unit: {name: plane, column: tail, rows: 3}, caps: CAPS}
sources:
  flights: {path: flights.parquet, batches: {column: date, every: 1d, start: 2013-01-01}}
releases:
  counts: {kind: statistics, source: flights, measures: {rows: count}, rho: 0.01}
"""


@pytest.mark.parametrize(
    "caps",
    [
        "{batch: {rho: 0.01}, lifetime: {rho: 1}}",
        "{batch: {epsilon: 1, delta: 1e-9}, lifetime: {epsilon: 3, delta: 1e-6}}",
        "{batch: {rho: 0.02}, lifetime: {epsilon: 3, delta: 1e-6}, windows:"
        " [{batches: 7, rho: 0.05}, {time: 30d, epsilon: 1, delta: 1e-9}]}",
    ],
)
def test_a_price_in_rho_fits_caps_in_rho(tmp_path: Path, caps: str) -> None:
    """As rho, or as epsilon and delta."""
    loaded(tmp_path, COUNTED.replace("CAPS", caps))


@pytest.mark.parametrize(
    ("good", "bad", "where", "why"),
    [
        ("", "", "counts.rho", "paid in rho, and the lifetime cap is in pure epsilon"),
        (
            "",
            "{batch: {rho: 1}, lifetime: {rho: 2}, windows: [{batches: 7, epsilon: 9}]}",
            "counts.rho",
            "the 7-batch cap is in pure epsilon",
        ),
        (
            "",
            "{batch: {rho: 0.009}, lifetime: {rho: 2}}",
            "caps.batch",
            "cost rho 0.01 a batch, the batch cap is 0.009",
        ),
        (
            "",
            "{batch: {rho: 1}, lifetime: {rho: 2}, windows: [{batches: 7, rho: 0.001}]}",
            "caps.windows",
            "cost rho 0.01",
        ),
        ("rho: 0.01", "rho: 5", "counts.rho", "epsilon above 20 at delta 1e-09"),
        ("rho: 0.01", "rho: 1e-13", "counts.rho", "3 records would get less"),
        ("rho: 0.01", "rho: 0.01, epsilon: 0.1", "counts", "a release has one price"),
        (", rho: 0.01", "", "counts", "epsilon is missing"),
    ],
)
def test_a_price_in_rho_is_refused_with_the_reason(
    tmp_path: Path, good: str, bad: str, where: str, why: str
) -> None:
    """At its key."""
    caps = "{batch: {rho: 9}, lifetime: {rho: 9}}" if good else bad or "{batch: 1, lifetime: 9}"
    text = COUNTED.replace("CAPS", caps)
    with pytest.raises(ConfigurationError, match=re.escape(why)) as caught:
        loaded(tmp_path, text.replace(good, bad) if good else text)
    assert re.search(rf"config\.yaml:\d+:\d+ \S*{re.escape(where)}", str(caught.value))
