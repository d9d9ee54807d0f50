"""Names of files in tables, logs and messages: no markup, no forged rows, no escapes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.cli.output import print_rows
from streamdp.log import close, configure

NAMES = ["x[/y].parquet", "[red]r.csv", "a\tb.csv", "a\nb.csv", "\x1b[31mred.csv", "\udcff.csv"]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("drawn", [False, True])
def test_a_name_is_a_cell(
    name: str, drawn: bool, terminal: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """On a terminal and in a pipe: one row, one cell, no control character."""
    if drawn:
        terminal()
    print_rows([{"batch": name, "value": 1}], "table", title=name)
    shown = capsys.readouterr().out
    assert "\x1b[31m" not in shown
    assert "\udcff" not in shown
    if not drawn:
        assert [line.count("\t") for line in shown.splitlines()] == [1, 1]
    assert name.isprintable() <= (name in shown)


def test_escapes_stay_in_the_log(tmp_path: Path) -> None:
    """`logs` shows what a name holds, and does not do it."""
    (tmp_path / "config.yaml").write_text((Path(__file__).parents[2] / "config.yaml").read_text())
    say = configure(tmp_path / "streamdp.log", "info", 10**6, 3, "off")
    say("recovery.burnt", job="j", batch="\x1b]0;owned\x07\nforged")
    close()
    shown = CliRunner().invoke(cli, ["logs", "-c", str(tmp_path / "config.yaml")])
    assert "\x1b" not in shown.output
    assert len(shown.output.splitlines()) == 1
