"""The archive is under the ledger's chain: what was released is what is stored."""

import sqlite3
from pathlib import Path

import pytest

from streamdp.errors import IntegrityError
from streamdp.store import archive
from streamdp.store.sqlite import SqliteStore
from streamdp.store.verified_open import verify
from tests.worlds import World

EDITS = (
    """UPDATE release SET "rows" = replace("rows", '[[0.25,', '[[0.125,') WHERE reservation = 4""",
    """UPDATE release SET "rows" = '[', form = NULL WHERE reservation = 4""",
    """UPDATE release_form SET parts = replace(parts, '"value', '"price')""",
    "UPDATE release_form SET parts = '[]'",
    "UPDATE release_form SET parts = '{'",
    """UPDATE release_form SET parts = replace(parts, '","]', '",";"]')""",
    """UPDATE release SET "rows" = '[[1],2]' WHERE reservation = 4""",
    """UPDATE release SET "rows" = '[' WHERE reservation = 4""",
    "DELETE FROM release_form",
    "INSERT INTO release_form (parts) VALUES ('[]')",
    "UPDATE release SET epsilon_nano = epsilon_nano - 1 WHERE reservation = 4",
    "UPDATE release SET id = 'other' WHERE reservation = 4",
    "UPDATE batch SET window_end = window_end + 1 WHERE key IN (SELECT max(key) FROM batch)",
    "UPDATE learned_state SET state = '{}' WHERE reservation = 2",
    "UPDATE learned_state SET state = '{}' WHERE reservation = 10",
    "DELETE FROM learned_state WHERE reservation = 10",
    "INSERT INTO learned_state VALUES (99, '{}')",
    "UPDATE learner SET digest = x'00' WHERE version = 2",
    "UPDATE learner SET digest = NULL WHERE version = 5",
    "UPDATE learner SET signature = '{}' WHERE version = 1",
    "UPDATE learner SET signature = '{}' WHERE version = 3",
    "DELETE FROM learner WHERE version = 5",
    "UPDATE learner SET reservation = 1 WHERE version = 5",
    "DELETE FROM release WHERE reservation = 10",
    "INSERT INTO release SELECT 1, 'x', 'k', source, batch, kind, 1, 1, version, NULL, ''"
    " FROM release LIMIT 1",
    "INSERT INTO learner SELECT 1, 'k', 1, '', x''",
)


@pytest.mark.thinned(2)
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


def test_only_the_newest_states_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the others their digests; a signature stands once, and each release still has it."""
    monkeypatch.setattr(archive, "KEPT", 2)
    world = World(tmp_path)
    world.runner.round([world.job()])
    assert world.count("SELECT count(*) FROM learned_state") == 2
    assert world.count("SELECT count(*) FROM learner WHERE signature != ''") == 1
    database = world.store.database
    assert [each.version for each, _ in archive.learned_states(database, "job")] == [5, 4]
    assert archive.is_forgotten(database, "job", 3)
    newest = archive.latest_learned(database, "job")
    assert newest is not None
    assert newest.version == 5
    for release in archive.select_releases(database):
        assert archive.signature_of(database, release.id) == newest.signature
    verify(database)
