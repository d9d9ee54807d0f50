"""One record more changes one record, in the short profile of `python -m tests.privacy.reading`."""

from __future__ import annotations

import pytest

from tests.privacy.reading.pairs import Compared, Pair
from tests.privacy.reading.registry import pairs

_COMPARED = Compared()


@pytest.mark.parametrize("pair", [*pairs(quick=True)], ids=lambda pair: pair.name)
def test_a_record_is_not_told_by_what_it_makes_of_others(pair: Pair) -> None:
    """Exit codes, ledgers and rows agree, and numbers differ by no more than one record."""
    without, extra, told = _COMPARED(pair)
    assert not told, f"{without}; with the record: {extra}"
