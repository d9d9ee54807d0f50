"""Messages about a configuration: plain words, the nearest key of the section, what to write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamdp.config import load
from streamdp.config.values import _mode, _size
from streamdp.errors import ConfigurationError
from tests.config.test_faults import GOOD

FOREIGN = ("Input should", "valid ", "instance of", "pydantic", "Field required", "Extra inputs")


def refused(folder: Path, text: str) -> str:
    (folder / "c.yaml").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load(folder / "c.yaml", {})
    return str(caught.value)


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ("privacy:\n", "privacy:\n  delta: 1e-6\n", "here are known: allow_large_epsilon, caps"),
        ("privacy:\n", "privacy:\n  neighbors: add-remove\n", "did you mean 'neighbours'?"),
        ("every: 1d", "size: 2d", "the length of a window is called every: every: 2d"),
        ("store:", "stoer: 5\nstore:", "did you mean 'store'?"),
    ],
)
def test_what_failed_a_user_says_what_to_write(
    tmp_path: Path, was: str, becomes: str, says: str
) -> None:
    assert was in GOOD
    assert says in refused(tmp_path, GOOD.replace(was, becomes, 1))


def test_quantiles_in_percent(tmp_path: Path) -> None:
    """A list of percents is told as shares."""
    found = yaml.safe_load(GOOD)
    next(iter(found["releases"].values()))["quantiles"] = [10, 50, 90]
    assert "write 0.1 instead of 10, or deciles" in refused(tmp_path, yaml.safe_dump(found))


ODD: tuple[Any, ...] = (None, 5, -1, 1.5, True, "x", "", [], [1], {}, {"a": 1})


def test_no_message_is_in_the_words_of_the_code(tmp_path: Path) -> None:
    """Every value of a good configuration put in the wrong: no raw text, no traceback."""
    said = []
    for path in _paths(yaml.safe_load(GOOD)):
        for odd in ODD:
            bad = yaml.safe_load(GOOD)
            _put(bad, path, odd)
            (tmp_path / "c.yaml").write_text(yaml.safe_dump(bad))
            try:
                load(tmp_path / "c.yaml", {})
            except ConfigurationError as error:
                said.append(str(error))
    assert len(said) > 100
    assert [text for text in said if any(word in text for word in FOREIGN)] == []


def test_sizes_and_modes_are_read_as_they_are_written() -> None:
    assert _size("10 KB") == _size("10kB") == _size("10 kb") == 10_000
    assert (_mode("0644"), _mode("640"), _mode(600)) == (0o644, 0o640, 0o600)
    for bad in ("0044", "0888", "rw", "07777"):
        with pytest.raises(ValueError, match="octal"):
            _mode(bad)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield (*path, key)
            yield from _paths(child, (*path, key))


def _put(value: Any, path: tuple[Any, ...], odd: Any) -> None:
    for part in path[:-1]:
        value = value[part]
    value[path[-1]] = odd
