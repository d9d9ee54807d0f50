"""What was released, charged and learned of five streams stays as it was recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kinds.recorded import FOLDER, STREAMS, record


@pytest.mark.parametrize("name", STREAMS)
def test_releases_charges_and_states_are_bit_for_bit_those_recorded(
    name: str, tmp_path: Path
) -> None:
    """Rows, ledger, signatures, states and answers of gates, all of them."""
    found = json.loads(json.dumps(record(name, tmp_path)))
    recorded = json.loads((FOLDER / f"{name}.json").read_text())
    assert found == recorded
