"""One record more changes one record, in the short profile of `python -m tests.privacy.reading`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from streamdp.cli import cli
from tests.contract.servers import mariadb_binaries
from tests.privacy.reading import servers, text
from tests.privacy.reading.mutants import (
    duckdb_reads_csv,
    expressions_are_raw,
    mariadb_converts_texts,
)
from tests.privacy.reading.pairs import CONFIGURATION, Compared, Pair
from tests.privacy.reading.registry import pairs

_COMPARED = Compared()


@pytest.mark.parametrize("pair", [*pairs(quick=True)], ids=lambda pair: pair.name)
def test_a_record_is_not_told_by_what_it_makes_of_others(pair: Pair) -> None:
    """Exit codes, ledgers and rows agree, and numbers differ by no more than one record."""
    without, extra, told = _COMPARED(pair)
    assert not told, f"{without}; with the record: {extra}"


def test_the_statement_says_what_is_assumed_of_a_writer(tmp_path: Path) -> None:
    """With `quoted_newlines` records are told apart by quotes; it is refused of other formats."""
    pair = text.at_cut("512 KiB", -6, "a letter", b"\n", "", threads=2, quoted=True)
    pair.write(tmp_path, True)
    path = tmp_path / "config.yaml"
    keys = {"source": pair.source, "release": pair.release, "unit": pair.unit}
    path.write_text(CONFIGURATION.format(**keys))
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


@pytest.mark.long
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize(
    ("record", "offset", "ahead"),
    [("quoted line ends", -6, 0), ("opening quote", 0, 30 * text.MEBIBYTE)],
)
def test_the_reader_of_duckdb_is_caught_at_its_cut(
    end: bytes, record: str, offset: int, ahead: int
) -> None:
    """It guesses behind 64 MiB whether it is within quotes: all records there are lost."""
    with duckdb_reads_csv():
        pair = text.at_cut("64 MiB", offset, record, end, "", threads=2, ahead=ahead)
        without, extra, told = Compared()(pair)
    assert told
    distance = without.distance(extra)
    assert distance is not None
    assert distance > 100_000


@pytest.mark.long
def test_no_record_is_told_in_the_long_profile() -> None:
    """The same of every pair of `python -m tests.privacy.reading`: hours."""
    assert not [pair.name for pair in pairs(quick=False) if _COMPARED(pair)[2]]
