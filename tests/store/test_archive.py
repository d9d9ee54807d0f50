"""The archive is under the ledger's chain: what was released is what is stored."""

import sqlite3
from pathlib import Path

import pytest

from streamdp.errors import IntegrityError
from streamdp.store.sqlite import SqliteStore
from tests.worlds import World

EDITS = (
    """UPDATE release SET "rows" = replace("rows", '"value": ', '"value": 1') WHERE rowid = 2""",
    "UPDATE release SET epsilon_nano = epsilon_nano - 1 WHERE rowid = 2",
    "UPDATE release SET id = 'other' WHERE rowid = 2",
    "UPDATE batch SET window_end = window_end + 1 WHERE key IN (SELECT max(key) FROM batch)",
    "UPDATE learner SET state = '{}' WHERE version = 2",
    "DELETE FROM learner WHERE version = 5",
    "DELETE FROM release WHERE rowid = 5",
    "INSERT INTO release SELECT 'x', 'k', source, batch, kind, 1, 1, 1, version, '' FROM release"
    " LIMIT 1",
    "INSERT INTO learner SELECT 'k', 1, 'x', '', ''",
)


@pytest.mark.parametrize("edit", EDITS)
def test_an_altered_archive_is_refused(tmp_path: Path, edit: str) -> None:
    """A changed, removed or added release, window or state refuses the store when it is opened."""
    world = World(tmp_path)
    world.runner.round([world.job()])
    world.store.close()
    SqliteStore.open(world.path, 0).close()
    raw = sqlite3.connect(world.path)
    assert raw.execute(edit).rowcount == 1
    raw.commit()
    raw.close()
    with pytest.raises(IntegrityError, match="altered"):
        SqliteStore.open(world.path, 0)
