"""A store to look at: gated and plain jobs, hostile names of batches and groups."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from streamdp.cli.web import kind_of
from streamdp.config import load
from streamdp.config.model import Web
from streamdp.web.app import application
from streamdp.web.reader import Reader
from tests.crash.gated import GATED, GatedHome
from tests.web.addresses import HOST

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(2)>',
    "{{ 7*7 }}${7*7}<%= 7*7 %>",
    "' OR 1=1; DROP TABLE ledger; --",
    "javascript:alert(3)",
)
"""Names that are a danger to pages which take them for more than text."""


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a configuration and a store in which a gate has said no and yes."""
    config = GATED.replace("end: 2023-11-18", "end: 2023-11-19")
    made = GatedHome.furnish(tmp_path_factory.mktemp("web") / "home", config)
    with (made.path / "stream.csv").open("a") as file:
        file.write("2023-11-18T12:00:00,90\n" * 200)
    for name in HOSTILE:
        (made.path / "drops" / f"{name}.csv").write_text("x\n50\n60\n")
    made.live()
    with closing(sqlite3.connect(made.store)) as store:
        rows = [{"group": name, "value": number} for number, name in enumerate(HOSTILE)]
        store.execute(
            "UPDATE release SET form = NULL, rows = ? WHERE job = 'parts' AND batch LIKE '%img%'",
            [json.dumps(rows)],
        )
        store.commit()
    return made.path


@pytest.fixture
def reader(home: Path) -> Reader:
    return Reader(home / "config.yaml", load(home / "config.yaml"), kind_of)


@pytest.fixture
def client(reader: Reader) -> Iterator[TestClient]:
    """A browser on this machine."""
    with TestClient(application(reader, Web()), base_url=HOST) as client:
        yield client


def release_id(client: TestClient, job: str = "daily") -> str:
    """The last release of a job."""
    found: str = client.get(f"/api/v1/jobs/{job}/releases?limit=1").json()["items"][0]["release_id"]
    return found
