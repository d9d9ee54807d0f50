"""What if: the terminal, the page and the API say the same, and refuse what they cannot read."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from starlette.testclient import TestClient

from streamdp.cli import cli
from streamdp.config import Configuration, load
from streamdp.config.model import Web
from streamdp.types import ReleaseKind
from streamdp.web.app import application
from streamdp.web.reader import Reader
from tests.crash.home import Home
from tests.web.addresses import HOST


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days of a job, and two files of another: caps 0.3 and 20, price 0.1."""
    made = Home.furnish(tmp_path_factory.mktemp("budget"))
    made.live()
    return made.store.parent


def typed(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["budget", "-c", str(home / "config.yaml"), *arguments])


def rows(home: Path, *arguments: str) -> dict[str, dict[str, object]]:
    lines = typed(home, "--json", *arguments).stdout.splitlines()
    return {row["scope"]: row for row in map(json.loads, lines) if "lifetime" in row}


@pytest.mark.parametrize(
    ("asked", "price", "batches", "until", "refused"),
    [
        ({"daily": "0.2"}, "0.2", 98, "2024-02-23", []),
        ({"daily": "0.05", "stream.another": "0.1"}, "0.15", 131, "2024-03-27", []),
        ({"daily": "0"}, "0", None, None, []),
        ({"stream.lifetime": "1"}, "0.1", 7, "2023-11-24", []),
        ({"stream.lifetime": "0.1"}, "0.1", 0, "2023-11-17", []),
        ({"daily": "0.4"}, "0.4", 49, "2024-01-05", ["batch cap of epsilon"]),
    ],
)
def test_terminal_page_and_api_say_the_same(
    home: Path,
    asked: dict[str, str],
    price: str,
    batches: int | None,
    until: str | None,
    refused: list[str],
) -> None:
    """By hand: 20 less 0.3 spent, divided by what a day would cost; nothing of another source."""
    options = [word for name, text in asked.items() for word in ("--if", f"{name}={text}")]
    found = rows(home, *options)
    then = found["stream"]["if"]
    assert isinstance(then, dict)
    assert then["price_of_batch_exact"] == price
    assert (then["batches_left"], then["until"], then["refused_by"]) == (batches, until, refused)
    assert "if" not in found["drops"]
    words = typed(home, *options).stdout
    assert (f"{batches:,} more batch" if batches else "if so") in words
    head = words.splitlines()[0].split("\t")
    assert head[-4:] == ["burnt", "batches_left", "until", "at_pace"]
    path = home / "config.yaml"
    query = "&".join(f"if.{name}={text}" for name, text in asked.items())
    with TestClient(application(Reader(path, load(path), _no_kind), Web()), base_url=HOST) as page:
        text = html.unescape(page.get(f"/budget?{query}").text)
        items = {
            each["scope"]: each for each in page.get(f"/api/v1/budget?{query}").json()["items"]
        }
    assert text.count("If so") == 1
    assert words.strip().splitlines()[-1].split("batch, ")[1].split(";")[0] in text
    assert items["stream"]["if"]["batches_left"] == batches
    assert items["stream"]["if"]["price_of_batch"]["exact"] == price
    if until is not None:
        assert items["stream"]["if"]["until"].startswith(until)
    for scope, row in found.items():
        at_pace = items[scope]["until_at_pace"]
        assert (at_pace and at_pace[:10]) == row["until_at_pace"]
    assert found["stream"]["until_at_pace"] is not None


def _no_kind(configuration: Configuration, job: str) -> ReleaseKind:
    raise AssertionError("budgets need no kind")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("dialy=0.2", "there are: daily, parts"),
        ("daily=cheap", "not a finite number"),
        ("daily=-1", "not between 0 and 1e9"),
        ("daily", "NAME=AMOUNT"),
    ],
)
def test_what_cannot_be_read_is_refused(home: Path, asked: str, says: str) -> None:
    """With what there is."""
    result = typed(home, "--if", asked)
    assert result.exit_code == 2
    assert says in result.output


def test_takers_add_up_to_what_was_spent(home: Path) -> None:
    """Each job with its price, and its charges."""
    for row in rows(home).values():
        takers = row["jobs"]
        assert isinstance(takers, list)
        assert sum(each["spent"] for each in takers) == pytest.approx(row["lifetime"])
        assert [each["price_exact"] for each in takers] == ["0.1"]
        assert row["batches_left"] == row["batches_left_at_pace"]
