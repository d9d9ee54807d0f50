"""The sweep of expressions, and that it finds what is wrong with a reading that is."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest

from streamdp.backends.duckdb import instance
from streamdp.backends.duckdb.dialect import DuckDBDialect
from streamdp.backends.duckdb.parquet import Parquet
from tests.privacy.reading.sweep import PLAIN, WRITE, Form, Sweep, sweep, write

of_one_version = pytest.mark.skipif(
    duckdb.__version__ != "2.0.0", reason="DuckDB 2.0.0 does so, and no other version that is known"
)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("form", WRITE)
def test_no_record_makes_an_expression_fail_or_count_for_others(tmp_path: Path, form: Form) -> None:
    done, faults = sweep(tmp_path, seed=27, expressions=100, form=form)
    assert faults == []
    assert done.refused < done.asked, "most of what the grammar says is admitted"


@pytest.mark.long
@pytest.mark.parametrize("form", WRITE)
def test_no_record_of_many_sweeps_does(tmp_path: Path, form: Form) -> None:
    for seed in range(5):
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert sweep(folder, seed, expressions=4_000, form=form)[1] == []


@of_one_version
def test_an_optimizer_that_moves_work_out_of_try_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instance, "OPTIMIZERS", {*instance.OPTIMIZERS, "common_subexpressions"})
    assert sweep(tmp_path, seed=27, expressions=100)[1]


def test_an_expression_that_is_not_tried_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DuckDBDialect, "tried", lambda _, expression: f"({expression})")
    assert sweep(tmp_path, seed=27, expressions=30)[1]


@of_one_version
def test_times_that_are_none_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DuckDBDialect, "plain_time", lambda _, value, kind: value)
    monkeypatch.setattr(Parquet, "_total", lambda _, name, kind: f'"{name}"')
    told = Sweep(write(tmp_path, random.Random(27)))
    assert told.fault([("cuts", 'LENGTH(TRY_CAST("at" AS TEXT))')], str(PLAIN)) is not None
