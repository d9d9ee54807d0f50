"""Answers compute with one thread, and leave the threads of whoever asks as they were."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from streamdp.library.ask import Ask, libraries, one_thread

ONE, TWO = ([each] * len(libraries()) for each in (1, 2))
pytestmark = pytest.mark.skipif(not libraries(), reason="NumPy has another library than OpenBLAS")


def threads() -> list[int]:
    return [get() for get, _ in libraries()]


@pytest.fixture(autouse=True)
def _two() -> Iterator[None]:
    """Two threads before; as many as there were after the test."""
    before = threads()
    for _, set_ in libraries():
        set_(2)
    yield
    for (_, set_), number in zip(libraries(), before, strict=True):
        set_(number)


def test_blocks_of_several_threads_end_with_the_last() -> None:
    """Nested, and begun before another ends: one thread until all are over, two again then."""
    begun, over = threading.Event(), threading.Event()

    def other() -> None:
        with one_thread():
            begun.set()
            over.wait(600)

    beside = threading.Thread(target=other)
    with one_thread():
        with one_thread():
            assert threads() == ONE
        beside.start()
        begun.wait(600)
    assert threads() == ONE
    over.set()
    beside.join()
    assert threads() == TWO


class SeenError(Exception):
    """What is asked of measurements; holds how many threads compute then."""


class Watched:
    """Measurements that say how many threads compute when they are asked."""

    def __getattr__(self, name: str) -> Any:
        raise SeenError(threads())


@pytest.mark.parametrize(
    "question",
    [
        lambda ask: ask.quantile(0.5),
        lambda ask: ask.share(above=1.0),
        lambda ask: ask.histogram(),
        lambda ask: ask.records(),
        lambda ask: ask.total("sum"),
        lambda ask: ask.mean("sum", "count"),
        lambda ask: ask.compare("1970-01-01", "1970-01-02"),
    ],
)
def test_each_question_computes_with_one_thread(question: Callable[[Ask], object]) -> None:
    """Also one that is refused leaves two behind."""
    ask = Ask(Watched(), "UTC", (0, 864_000, 86_400))  # type: ignore[arg-type]
    with pytest.raises(SeenError) as seen:
        question(ask)
    assert seen.value.args == (ONE,)
    assert threads() == TWO
