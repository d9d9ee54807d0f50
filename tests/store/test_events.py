"""Events that repeat are stored short, read whole, and stay under the chain."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest

from streamdp.errors import IntegrityError
from streamdp.privacy.filters import Caps
from streamdp.store.ledger import chain
from streamdp.store.ledger.chain import Events
from streamdp.store.ledger.privacy_guarantee import recompute
from streamdp.store.sqlite import SqliteStore
from streamdp.types import Batch, Charge, Json
from tests.store.kept import terms
from tests.worlds import without


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def event(*priors: str, column: str = "x") -> Json:
    """A charge as of a release by groups, with a prior each."""
    parts = [{"type": "pure", "epsilon": "1/10", "prior": digest(each)} for each in priors]
    return {"type": "parallel", "column": column, "events": parts}


EVENTS = (
    event("a"),
    event("b"),
    event("c"),
    event("c", column="y"),  # another question
    event("d", column="y"),
    event("d", "e"),  # another number of digests
    event("f", "g"),
    {"type": "pure", "epsilon": "1/10"},
    {"type": "pure", "epsilon": "1/10"},
)
REPEATED = (False, True, True, False, True, False, True, False, True)


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    """Charges of two jobs that take turns."""
    made = SqliteStore.open(tmp_path / "s.db", 0)
    made.declare(terms(Caps(10**10, 10**10)), 0)
    for number, each in enumerate(EVENTS):
        for job in ("j", "k"):
            charge = Charge(each, 10**8, 1)
            made.burn(made.reserve("s", job, Batch("s", f"{number}"), charge, 0), 0)
    return made


def stored(store: SqliteStore) -> list[tuple[int, str]]:
    return store.database.execute(
        "SELECT seq, event FROM ledger WHERE purpose = 'reserve' ORDER BY seq"
    ).fetchall()


def test_what_repeats_is_stored_short_and_read_whole(store: SqliteStore) -> None:
    """Byte by byte as it was written, whatever other jobs charged between."""
    events = Events(store.database)
    rows = stored(store)
    whole = [events.whole(text) for _, text in rows]
    assert whole == [json.dumps(each, sort_keys=True) for each in EVENTS for _ in "jk"]
    short = [text.startswith('{"as":') for _, text in rows]
    assert short == [each for each in REPEATED for _ in "jk"]
    assert len(list(recompute(store.database))) == len(rows)
    chain.verify(store.database)
    chain.verify(store.database, 3)


@pytest.mark.parametrize("old", ["1/10", '"of":["', '"as":', '"of"'])
def test_an_altered_event_is_found(tmp_path: Path, store: SqliteStore, old: str) -> None:
    """Whether it is the one that is repeated or one that repeats it."""
    store.close()
    raw = sqlite3.connect(tmp_path / "s.db")
    rows = raw.execute("SELECT seq, event FROM ledger WHERE purpose = 'reserve' ORDER BY seq")
    seq, text = next((seq, text) for seq, text in rows if old in text)
    changed = text.replace(old, old[:-1] + "9")
    with without(raw, "ledger_keeps_values"):
        raw.execute("UPDATE ledger SET event = ? WHERE seq = ?", [changed, seq])
    raw.commit()
    raw.close()
    with pytest.raises(IntegrityError, match="altered"):
        SqliteStore.open(tmp_path / "s.db", 0)
