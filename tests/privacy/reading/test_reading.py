"""One record more changes one record, in the short profile of `python -m tests.privacy.reading`."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.cli import cli
from tests.contract.servers import mariadb_binaries
from tests.privacy.reading import columns, expressions, keys, servers, text
from tests.privacy.reading.__main__ import sample
from tests.privacy.reading.mutants import (
    arrow_is_handed_on,
    arrow_takes_over,
    decimals_are_as_stored,
    duckdb_finds_lines,
    duckdb_reads_csv,
    duckdb_types_folders,
    expressions_are_raw,
    expressions_are_untried,
    mariadb_converts_texts,
)
from tests.privacy.reading.pairs import (
    CONFIGURATION,
    Compared,
    Pair,
    SignalledError,
    TellsNothingError,
    are_told,
    run_once,
)
from tests.privacy.reading.registry import pairs

_COMPARED = Compared()


@pytest.mark.thinned(12)
@pytest.mark.parametrize("pair", [*pairs(quick=True)], ids=lambda pair: pair.name)
def test_a_record_is_not_told_by_what_it_makes_of_others(pair: Pair) -> None:
    """Exit codes, ledgers and rows agree, and numbers differ by no more than one record."""
    without, extra, told = _COMPARED(pair)
    assert not told, f"{without}; with the record: {extra}"


def test_a_run_that_is_stopped_from_outside_is_no_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs that a signal has stopped look alike, whatever their data sets are."""
    run = DuckDBBackend.run

    def signalled(self: DuckDBBackend, statement: str) -> object:
        os.kill(os.getpid(), signal.SIGTERM)
        return run(self, statement)

    monkeypatch.setattr(DuckDBBackend, "run", signalled)
    with pytest.raises(SignalledError):
        run_once(text.hostile(text.Csv, "value", "quote", b"\n", ""), extra=False)


def test_pairs_that_run_together_are_what_they_are_alone() -> None:
    """Exit codes, ledgers and numbers; with DuckDB's reader a pair is told apart in both ways."""
    names = ("quoted line ends", "opening quote", "plain")
    alike = [text.at_cut("512 KiB", -3, each, b"\n", ".gz", threads=2) for each in names]
    alike += [text.at_cut("512 KiB", at, "plain", b"\n", ".gz", threads=2) for at in (-2, 0)]
    together = [*Compared(control=10**9).every(alike)]
    assert together == [*Compared(control=1).every(alike)]
    assert [pair for pair, _, _, told in together if told] == []
    with duckdb_reads_csv():
        told = [pair.record for pair, _, _, told in Compared().every(alike) if told]
    assert "opening quote" in told


def test_a_batch_that_is_refused_sends_pairs_to_runs_of_their_own() -> None:
    """A run that has one is no outcome of the others."""
    unclosed = text.at_cut("512 KiB", 0, "opening quote", b"\n", "", threads=2, quoted=True)
    plain = text.at_cut("512 KiB", 0, "plain", b"\n", "", threads=2, quoted=True)
    told = {pair.record: told for pair, _, _, told in Compared().every([unclosed, plain])}
    assert told == {"opening quote": True, "plain": False}


@pytest.mark.long
def test_a_sample_has_its_share_of_every_kind() -> None:
    """Of every writer as many as of all, give or take one a record; other seeds take others."""
    every = [pair for pair in text.at_cuts(quick=False) if "512 KiB" in pair.place]
    few = sample(every, len(every) // 20, seed=1)
    assert len(few) == len(every) // 20
    assert {pair.name for pair in few} != {pair.name for pair in sample(every, len(few), seed=2)}
    for writer in {pair.writer for pair in every}:
        share = sum(pair.writer == writer for pair in every) / len(every)
        assert abs(sum(pair.writer == writer for pair in few) - share * len(few)) < 2


def test_the_statement_says_what_is_assumed_of_a_writer(tmp_path: Path) -> None:
    """With `quoted_newlines` records are told apart by quotes; it is refused of other formats."""
    pair = text.at_cut("512 KiB", -6, "a letter", b"\n", "", threads=2, quoted=True)
    pair.write(tmp_path, True)
    path = tmp_path / "config.yaml"
    places = {"source": pair.source, "release": pair.release, "unit": pair.unit, "kind": pair.kind}
    path.write_text(CONFIGURATION.format(**places))
    assert CliRunner().invoke(cli, ["run", "--once", "-c", str(path)]).exit_code == 0
    said = CliRunner().invoke(cli, ["statement", "-c", str(path)]).output
    assert "quotes every field" in " ".join(said.split())
    path.write_text(path.read_text().replace("data.csv", "data.parquet"))
    refused = CliRunner().invoke(cli, ["validate", "-c", str(path)])
    assert "CSV files alone" in str(refused.exception)


def test_the_reader_of_duckdb_is_caught() -> None:
    """A quote without its end takes the records behind it with it."""
    with duckdb_reads_csv():
        _, _, told = Compared()(text.hostile(text.Csv, "value", "opening quote", b"\n", ""))
    assert told


def test_keys_that_a_record_takes_with_it_are_caught() -> None:
    """The reader of DuckDB loses keys and counts behind a quote without its end."""
    pair = next(
        pair for pair in keys.pairs(quick=True) if pair.record == "opening quote" and pair.place
    )
    assert not Compared()(pair)[2]
    with duckdb_reads_csv():
        assert Compared()(pair)[2]


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    ("reader", "name"),
    [
        (duckdb_types_folders, "Parquet / PyArrow / group / text, no UTF-8"),
        (duckdb_types_folders, "Parquet / PyArrow, in folders / group / text, quotes"),
        (duckdb_types_folders, "Delta / delta-rs / group / text, quotes"),
        (arrow_takes_over, "Parquet / PyArrow / group / text, no UTF-8, beside durations"),
        (arrow_is_handed_on, "Arrow / PyArrow / value / decimal, most negative bits"),
        (decimals_are_as_stored, "DuckDB table / DuckDB / value / decimal, most negative bits"),
        (
            expressions_are_untried,
            "expressions / PyArrow, Parquet / a quotient / overflowing product",
        ),
    ],
)
def test_readers_of_columns_are_caught(
    reader: Callable[[], AbstractContextManager[None]], name: str
) -> None:
    """A reader put back tells data sets apart, and without it nothing does."""
    every = (each for made in (columns, expressions) for each in made.pairs(quick=False))
    pair = next(each for each in every if each.name == name)
    assert not Compared()(pair)[2]
    with reader():  # `Compared` refuses the data set if this reader counts nothing of it
        assert are_told(pair, run_once(pair, extra=False), run_once(pair, extra=True))


@pytest.mark.parametrize("server", ["PostgreSQL", "MariaDB"])
def test_raw_expressions_of_servers_are_caught(server: str) -> None:
    """The server ends the question at the record, and the charge is burnt."""
    pair = next(
        (
            each
            for each in servers.pairs(quick=True)
            if (each.format, each.role) == (server, "expression")
        ),
        None,
    )
    if pair is None:
        pytest.skip(f"no {server} here")
    with expressions_are_raw():
        without, extra, told = Compared()(pair)
    assert told
    assert (without.status, extra.status) == (0, 1)
    assert "burn" in extra.ledger


@pytest.mark.skipif(mariadb_binaries() is None, reason="no MariaDB here")
def test_texts_of_mariadb_that_are_converted_are_caught() -> None:
    """One unit takes the place of another among those that become one `?`."""
    found = [pair for pair in servers.apart(servers.MARIADB) if pair.writer == servers.EUCKR]
    with mariadb_converts_texts():
        assert any(Compared()(pair)[2] for pair in found)


def test_lines_that_end_at_carriage_returns_are_caught() -> None:
    """They may stand between the values of an object: one record would be several."""
    with duckdb_finds_lines():
        pair = text.with_return("carriage returns between values", b"\n", "")
        _, _, told = Compared()(pair)
    assert told


def _lost(pair: Pair) -> bool:
    """Whether a record takes or makes very many others."""
    without, extra, told = Compared()(pair)
    distance = without.distance(extra)
    return told and distance is not None and distance > 100_000


@pytest.mark.long
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize(
    ("record", "offset", "ahead"),
    [
        ("quoted line ends", -6, 0),
        ("opening quote", 0, 30 * text.MEBIBYTE),
        *(("a letter", -offset, 0) for offset in range(13)),
    ],
)
def test_the_reader_of_duckdb_is_caught_at_its_cut(
    end: bytes, record: str, offset: int, ahead: int
) -> None:
    """It guesses behind 64 MiB whether it is within quotes: all records there are lost."""
    pair = text.at_cut("64 MiB", offset, record, end, "", threads=2, ahead=ahead)
    assert not Compared()(pair)[2]
    with duckdb_reads_csv():
        assert _lost(pair)


@pytest.mark.long
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_the_reader_of_duckdb_is_caught_by_a_record_at_the_top(end: bytes) -> None:
    """A plain record pushes a letter of somebody else over the cut."""
    pair = text.at_cut("64 MiB", -6, "plain", end, "", threads=2, pushes=True)
    assert not Compared()(pair)[2]
    with duckdb_reads_csv():
        assert _lost(pair)


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_the_reader_of_duckdb_is_caught_by_a_long_field(packed: str, threads: int) -> None:
    """Among letters it does not know whether it is within quotes behind 1 MB."""
    pair = text.at_cut("64 MiB", -6, "long", b"\n", packed, threads=threads, among="letters")
    assert not Compared()(pair)[2]
    with duckdb_reads_csv():
        assert _lost(pair)


@pytest.mark.long
def test_no_record_is_told_in_the_long_profile() -> None:
    """The same of every pair of `python -m tests.privacy.reading`: hours."""
    written = (pair for pair in pairs(quick=False) if pair.written())
    assert not [pair.name for pair, _, _, told in Compared().every(written) if told]


def test_a_data_set_of_which_nothing_is_counted_tells_nothing() -> None:
    """Any two look alike then, and a reader that loses all records would pass."""
    pair = text.hostile(text.Csv, "value", "quote", b"\n", "")
    assert not Compared()(pair)[2]
    nothing = replace(pair, base=None, release=f"{pair.release}, where: '1 = 2'")
    with pytest.raises(TellsNothingError, match="counted 0"):
        Compared()(nothing)
    assert [told for _, _, _, told in Compared().every([nothing])] == [True]
