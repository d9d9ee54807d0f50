"""An engine of another package, found by its entry point."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from streamdp.backends.duckdb.section import DuckDBEngine
from streamdp.backends.section import ENGINES
from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.types import Batch, CellQuery, Grid
from tests.packages import offer

DEMO = Path(__file__).parents[2] / "config.yaml"
MODULE = '''
from typing import Literal
from streamdp.backends.duckdb.section import DuckDBEngine
from streamdp.sections.document import refuse

class Quack(DuckDBEngine):
    """DuckDB that reads no files named goose."""
    kind: Literal["quack"]

    def check(self, location, document, path):
        if "goose" in location.path:
            refuse("no goose quacks", document, (*path, "path"), "name a duck")
'''


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package on the path."""
    offers = {"quack": "Quack", "duckdb": "Quack"}
    offer(tmp_path, monkeypatch, ENGINES, "streamdp_quack", MODULE, offers)
    yield
    ENGINES.forget()


def configured(folder: Path, path: str) -> Path:
    before = "path: demo:flights.parquet"
    text = DEMO.read_text()
    assert before in text
    text = text.replace(before, f"path: {path}\n    engine: {{kind: quack}}")
    (folder / "config.yaml").write_text(text)
    return folder / "config.yaml"


def test_it_is_configured_and_reads(tmp_path: Path) -> None:
    """A source asks the section that was found for what reads it."""
    (tmp_path / "duck.csv").write_text("date,air_time\n2013-01-01,5\n2013-01-01,7\n")
    (section,) = load(configured(tmp_path, "duck.csv"), {}).sources.values()
    query, batch = CellQuery("air_time", Grid(Fraction(1), 0, 9)), Batch("s", "b", 0, 2**32)
    reader = section.model_copy(update={"types": {"date": "timestamp", "air_time": "number"}})
    backend = reader.backend()
    backend.check(query, batch)
    assert backend.answer(query, batch).counts.sum() == 2


def test_its_check_says_where(tmp_path: Path) -> None:
    """In the file, as the checks of others do."""
    with pytest.raises(ConfigurationError, match="no goose quacks") as caught:
        load(configured(tmp_path, "goose.csv"), {})
    assert "sources.flights.path" in str(caught.value.where)


def test_it_cannot_take_the_name_of_one_of_streamdp() -> None:
    """The package offers `duckdb`, too."""
    assert ENGINES.find("duckdb") is DuckDBEngine
