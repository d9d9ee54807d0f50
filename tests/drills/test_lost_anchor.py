"""The lost anchor: charged at least what was spent, within the caps, in random pasts."""

from __future__ import annotations

from typing import Any

import pytest

from streamdp.planning import lost_spending
from streamdp.store import reconcile
from tests.drills.lost_anchor import Way, drill, drills


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("past", "way"), [(1, "computed"), (1, "stated"), (2, "computed")])
def test_what_a_copy_has_forgotten_is_charged(past: int, way: Way) -> None:
    """In rho and over files; whatever is released afterwards stays within the caps."""
    assert drill(past, way).wrong == ()


@pytest.mark.long
def test_twenty_pasts() -> None:
    """All kinds, gates, edits between lives, both bounds."""
    assert [each for each in drills(20) if each.wrong] == []


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    ("way", "module", "name", "mistake"),
    [
        ("computed", reconcile, "_charge", lambda *arguments: None),
        ("stated", reconcile, "_charge", lambda *arguments: None),
        ("stated", reconcile, "assume_joined", lambda *arguments: None),
        ("computed", lost_spending, "_possible", lambda *arguments: []),
    ],
    ids=["forgets", "forgets what was said", "leaves batches out", "sees no batch"],
)
def test_a_way_back_that_forgets_is_found(
    way: Way, module: Any, name: str, mistake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power: by the amounts, or by what is drawn from batches that had been paid for."""
    monkeypatch.setattr(module, name, mistake)
    assert drill(1, way).wrong
