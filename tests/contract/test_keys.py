"""Keys and their units are the same, whatever the engine, to the last byte and the last unit."""

from dataclasses import replace

import numpy as np
import pytest

from streamdp.errors import SourceError
from streamdp.types import Batch, Key, KeyCounts, KeyQuery, UnitBound
from tests.contract.engines import Column, Columns, Engine, MariaDB, Memory
from tests.contract.test_contract import BATCH, reference

pytestmark = pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning")

TEXTS = (
    *("a", "A", "ä", "a\u0308", "a ", " a", "a  ", "", "a b", "it's", "no\\b", "日本"),
    *("\U0001f600", "\x1f", "a\tb", "%", "=1+1", "x" * 64, "x" * 65, "ä" * 32, "ä" * 33),
    *("NULL", '"', "`", "a,b", '["a"]', "-- x", "\u202ea", "ß", "SS", "ss", "i", "ı", "İ"),
)


def agree(engine: Engine, table: Columns, query: KeyQuery, batch: Batch = BATCH) -> dict[Key, int]:
    """The engine's answer, which is the reference's."""
    backend = engine.load(table)
    backend.check(query, batch)
    found = backend.answer(query, batch)
    known = reference(table).answer(query, batch)
    assert isinstance(found, KeyCounts)
    assert dict(found.units) == dict(known.units)
    assert all(type(each) is int for each in found.units.values())
    return dict(found.units)


def table(rows: int = 600) -> Columns:
    chance = np.random.default_rng(11)
    texts = [(*TEXTS, None)[i] for i in chance.integers(0, len(TEXTS) + 1, rows)]
    return {
        "t": Column("VARCHAR", texts),
        "n": Column(
            "BIGINT", [None if i == 3 else i for i in chance.integers(0, 4, rows).tolist()]
        ),
        "u": Column("VARCHAR", [f"p{i}" if i else None for i in chance.integers(0, 40, rows)]),
    }


def test_texts_are_keys_by_their_bytes(engine: Engine) -> None:
    """Capitals, accents, normal forms, blanks and quotes stay apart; null and empty are no key."""
    found = agree(engine, table(), KeyQuery(("t",), (), 1, 64))
    assert ("a",) in found
    assert {("A",), ("a ",), ("a\u0308",), ("ä" * 32,), ("x" * 64,), ("\x1f",)} <= set(found)
    assert not {("",), ("x" * 65,), ("ä" * 33,)} & set(found)


def test_keys_of_several_columns_stay_apart(engine: Engine) -> None:
    """Texts are never joined: `a, b` with `c` is not `a` with `b, c`; whole numbers are texts."""
    found = agree(engine, table(), KeyQuery(("t", "n"), (("a", "1"), ("it's", "2")), 4, 64))
    assert all(len(key) == 2 for key in found)
    assert ("a", "1") in found


def test_known_keys_come_back_however_few_hold_them(engine: Engine) -> None:
    """Others come back from `least` on, known ones that nobody holds do not."""
    known = (("it's",), ("no\\b",), ("nobody",), ("日本",), ("A",), ('["a"]',))
    every = agree(engine, table(), KeyQuery(("t",), (), 1, 64))
    found = agree(engine, table(), KeyQuery(("t",), known, 21, 64))
    assert {("it's",), ("no\\b",), ("日本",), ("A",), ('["a"]',)} <= set(found)
    assert min(found.values()) < 21
    assert set(found) - set(known) == {k for k, n in every.items() if n >= 21} - set(known)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("rows", [1, 4])
def test_a_unit_counts_once_a_key_and_for_so_many(engine: Engine, rows: int) -> None:
    """Keys that are not known first; records without a unit never count."""
    plain = KeyQuery(("t",), (), 1, 64, bound=UnitBound("u", rows, "it's"))
    found = agree(engine, table(), plain)
    assert sum(found.values()) <= 39 * rows
    known = tuple((text,) for text in TEXTS[:10] if text)
    after = agree(engine, table(), replace(plain, known=known))
    fewer = [sum(each.get(key, 0) for key in known) for each in (after, found)]
    assert fewer[0] < fewer[1]
    agree(engine, table(), replace(plain, columns=("t", "n"), known=(("a", "1"),), least=2))


@pytest.mark.thinned(2)
def test_a_condition_and_no_records(engine: Engine) -> None:
    """No key where no record counts."""
    backend = engine.load(table())
    if not isinstance(engine, Memory):
        query = KeyQuery(("t",), (("A",),), 1, 64, where="n = 1")
        backend.check(query, BATCH)
        assert 0 < sum(backend.answer(query, BATCH).units.values()) < 200
    nothing = {"t": Column("VARCHAR", [None, ""]), "u": Column("VARCHAR", ["a", None])}
    for bound in (None, UnitBound("u", 2)):
        assert not agree(engine, nothing, KeyQuery(("t",), (("A",),), 1, 64, bound=bound))


@pytest.mark.parametrize(
    "query",
    [
        KeyQuery(("missing",), (), 1, 64),
        KeyQuery(("t",), (), 1, 64, bound=UnitBound("missing", 1)),
        KeyQuery(("t",), (), 1, 64, where="missing = 1"),
        KeyQuery(("x",), (), 1, 64),
    ],
)
def test_what_cannot_be_asked_is_refused_before(engine: Engine, query: KeyQuery) -> None:
    """A missing column, and one of a type that has no text that all engines share."""
    backend = engine.load({**table(5), "x": Column("DOUBLE", [0.5] * 5)})
    if isinstance(engine, Memory) and query.columns == ("x",):
        return  # it has values and no types
    with pytest.raises(SourceError):
        backend.check(query, BATCH)


@pytest.mark.thinned(2)
def test_many_known_keys(engine: Engine) -> None:
    """Ten thousand, as a table within the question."""
    texts = [f"key {i % 12_000:06}" for i in range(13_000)]
    if isinstance(engine, Memory):
        texts = texts[:100]
    known = tuple((f"key {i:06}",) for i in range(0, 20_000, 2))
    columns = {"t": Column("VARCHAR", texts)}
    backend = engine.load(columns)
    found = backend.answer(KeyQuery(("t",), known, 2, 64), BATCH)
    expected = reference(columns).answer(KeyQuery(("t",), known, 2, 64), BATCH)
    assert dict(found.units) == dict(expected.units)


def test_more_known_keys_than_a_question_takes_are_refused_before(engine: Engine) -> None:
    """MariaDB ends the connection of a question of more than 16 MiB, its default."""
    if not isinstance(engine, MariaDB):
        return
    backend = engine.load({"t": Column("VARCHAR", ["a"] * 5), "u": Column("VARCHAR", ["b"] * 5)})
    known = tuple((f"{i:064}",) for i in range(150_000))
    query = KeyQuery(("t",), known, 1, 64)
    backend.check(query, BATCH)
    bounded = replace(query, bound=UnitBound("u", 1))
    with pytest.raises(SourceError, match="150000 known keys"):
        backend.check(bounded, BATCH)
    with pytest.raises(SourceError):
        backend.answer(bounded, BATCH)
    few = replace(bounded, known=known[:100_000])
    backend.check(few, BATCH)
    assert dict(backend.answer(few, BATCH).units) == {("a",): 1}
