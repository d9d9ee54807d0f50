"""A sink of another package, found by its entry point."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.sinks.jsonl import JsonLinesSinkSection
from streamdp.sinks.section import SINKS
from streamdp.wiring import outside_sinks
from tests.sinks.targets import release
from tests.worlds import HandClock

DEMO = Path(__file__).parents[2] / "config.yaml"


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package on the path."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "third_party"))
    SINKS.forget()
    yield
    SINKS.forget()


def configured(folder: Path, line: str) -> Path:
    text = DEMO.read_text().replace("  file: {", f"  mail: {line}\n  file: {{")
    (folder / "config.yaml").write_text(text)
    return folder / "config.yaml"


def test_it_is_configured_made_and_delivers(tmp_path: Path) -> None:
    """As those of streamdp are: its path is relative to the configuration."""
    path = configured(tmp_path, "{kind: maildir, path: post, password: '${WORD}'}")
    made = outside_sinks(load(path, {"WORD": "secret"}), HandClock())
    made["mail"].deliver(release(1))
    assert (tmp_path / "post/id1.eml").read_text() == "job b1\n"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{kind: maildir, path: post, password: secret}", "must not be written"),
        ("{kind: maildir, path: releases.jsonl, password: '${WORD}'}", "is that of"),
        ("{kind: maildir, path: post, password: '${WORD}', box: x}", "not known"),
        ("{kind: maildri, path: post}", "maildir"),
        ("{path: post}", "kind is missing|key is missing"),
    ],
)
def test_what_is_wrong_with_it_is_refused(tmp_path: Path, line: str, what: str) -> None:
    """By the checks that all sinks share; those say where in the file."""
    with pytest.raises(ConfigurationError, match=what):
        load(configured(tmp_path, line), {"WORD": "secret"})


def test_a_package_that_offers_something_else_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where to look stands in the error."""
    broken = tmp_path / "streamdp_broken-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: streamdp-broken\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[streamdp.sinks]\nbroken = streamdp_mail:Maildir\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    SINKS.forget()
    with pytest.raises(ConfigurationError, match="streamdp_mail:Maildir"):
        SINKS.find("broken")


def test_it_cannot_take_the_name_of_one_of_streamdp() -> None:
    """The package offers `jsonl`, too."""
    assert SINKS.find("jsonl") is JsonLinesSinkSection
