"""What tests draw follows from their names, in every process that comes of them."""

from __future__ import annotations

import pytest

from streamdp.privacy.draws import OperatingSystemEntropy
from tests.chance import settled
from tests.children import in_child
from tests.ports import free_port


def drawn() -> list[int]:
    return [OperatingSystemEntropy().bits(count) for count in (1, 8, 96, 96)]


def test_a_test_draws_the_same_in_every_run(request: pytest.FixtureRequest) -> None:
    """By its name; no two requests get the same."""
    first = drawn()
    assert first[2] != first[3]
    settled.begin(request.node.nodeid)
    assert drawn() == first
    settled.begin("another")
    assert drawn() != first


def test_no_two_processes_draw_the_same() -> None:
    """Neither a child and the test that forked it, nor two children."""
    found = [in_child(drawn).require(0), in_child(drawn).require(0), drawn()]
    assert len({each[-1] for each in found}) == 3


def test_a_port_is_nobody_elses() -> None:
    """Whoever asks for any gets another, and so does who asks for one to keep."""
    assert len({free_port() for _ in range(50)}) == 50
