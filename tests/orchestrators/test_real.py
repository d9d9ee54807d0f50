"""dbt, Dagster and Airflow themselves run what is in `deploy/`; each is skipped where it is not.

They are found on the PATH, in environments of their own:
    python -m venv dbt && dbt/bin/pip install 'dbt-core<1.12' dbt-duckdb
    PATH="$PATH:$PWD/dbt/bin" pytest tests/orchestrators
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
FLIGHTS = ROOT / "streamdp" / "demo" / "flights.parquet"
STREAMDP = Path(sys.executable).parent


def program(name: str) -> Path:
    """Where a program is, or a reason to skip."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} on the PATH; the module says how to install it")
    return Path(found)


def done(command: list[str], folder: Path, **environment: str) -> str:
    """What a command prints; `streamdp` comes before whatever else is on the PATH."""
    path = f"{STREAMDP}:{os.environ['PATH']}"
    ended = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-4000:]
    return ended.stdout


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """The dbt project, and its table as dbt builds it for the first two days."""
    folder = Path(shutil.copytree(DEPLOY / "dbt", tmp_path / "project"))
    with duckdb.connect(folder / "warehouse.duckdb") as connection:
        connection.execute(
            "CREATE TABLE flights AS SELECT date, tail_number, origin, air_time"
            f" FROM '{FLIGHTS}' WHERE date <= DATE '2013-01-02'"
        )
    (folder / "done").mkdir()
    for day in ("2013-01-01", "2013-01-02"):
        (folder / "done" / day).touch()
    return folder


def test_dbt_builds_marks_releases_and_builds_upon_it(tmp_path: Path) -> None:
    """Two days; the second built twice is released once."""
    program("dbt")
    folder = Path(shutil.copytree(DEPLOY / "dbt", tmp_path / "project"))
    for day in ("2013-01-01", "2013-01-02", "2013-01-02"):
        done(["sh", "run.sh", day], folder, FLIGHTS=str(FLIGHTS))
    with duckdb.connect(folder / "warehouse.duckdb", read_only=True) as connection:
        rows = connection.execute("SELECT day, median_minutes FROM air_time_trend").fetchall()
    assert [day for day, _ in rows] == ["2013-01-01", "2013-01-02"]
    assert all(0 < minutes < 1000 for _, minutes in rows)
    budget = json.loads(done(["streamdp", "budget", "--json"], folder))
    assert budget["lifetime"] == 2


DAGSTER = """
import json, sys
import dagster as dg
from streamdp_dagster import releases

asset = releases("air_time", config=sys.argv[1], source="flights")
for _ in range(2):
    result = dg.materialize([asset], raise_on_error=False)
    (made,) = result.asset_materializations_for_node("air_time")
    print(json.dumps({name: value.value for name, value in made.metadata.items()}))
broken = releases("air_time", config="nowhere.yaml")
ended = dg.materialize([broken], raise_on_error=False)
print(json.dumps(ended.success))
"""


def test_dagster_materializes_an_asset(warehouse: Path) -> None:
    """Its metadata are those of the last release; a wrong configuration fails it."""
    python = program("dagster").with_name("python")
    told = done(
        [str(python), "-c", DAGSTER, "config.yaml"],
        warehouse,
        PYTHONPATH=str(DEPLOY / "orchestrators"),
        DAGSTER_HOME="",
    )
    first, again, broken = map(json.loads, told.splitlines()[-3:])
    assert first == again == {"cap_reached": False, "batch": "2013-01-02", "epsilon": 1.0}
    assert broken is False


AIRFLOW = """
import datetime
from airflow.sdk import DAG
from streamdp_airflow import StreamdpRelease, StreamdpRunOnce

with DAG("releases", start_date=datetime.datetime(2026, 1, 1), schedule=None):
    CONFIG = "{config}"
    release = StreamdpRunOnce(task_id="release", config=CONFIG, source="flights")
    there = StreamdpRelease(
        task_id="there", config=CONFIG, job="air_time", batch="2013-01-02", poke_interval=1
    )
    release >> there
"""


def test_airflow_runs_operator_and_sensor(warehouse: Path) -> None:
    """A run of a DAG of both, in a database of its own."""
    airflow = str(program("airflow"))
    home = warehouse / "airflow"
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "releases.py").write_text(AIRFLOW.format(config=warehouse / "config.yaml"))
    environment = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PYTHONPATH": str(DEPLOY / "orchestrators"),
    }
    done([airflow, "db", "migrate"], warehouse, **environment)
    done([airflow, "dags", "reserialize"], warehouse, **environment)
    done([airflow, "dags", "test", "releases"], warehouse, **environment)
    budget = json.loads(done(["streamdp", "budget", "--json"], warehouse))
    assert budget["lifetime"] == 2
