"""What is found, what is remembered, and which texts are published."""

import json
import sys
import unicodedata
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdp.kinds.keys.kind import NEW, QUIET, Keys, key_texts, keys_of
from streamdp.kinds.keys.section import REFUSED, KeysSection, publishable
from streamdp.kinds.keys.spec import groups_among
from streamdp.kinds.section import GroupsFrom
from streamdp.privacy.price import Price
from streamdp.types import Batch, Key, KeyCounts, Outcome
from tests.worlds import ReplayedEntropy

KIND = Keys(("city",), Price(Fraction(1)), Fraction(1, 10**6), never=frozenset({("N/A",)}))


def days(kind: Keys, counts: dict[Key, int], length: int) -> list[Outcome]:
    """Releases of the same batch, day after day."""
    state, found, entropy = kind.init(), list[Outcome](), ReplayedEntropy()
    for day in range(length):
        plan = kind.plan(state, Batch("s", f"{day:02}"))
        outcome = kind.draw(plan, KeyCounts(counts), entropy)
        state = json.loads(json.dumps(kind.learn(state, plan, outcome)))
        found.append(kind.publish(state, outcome))
    return found


def test_large_keys_are_found_at_once_and_small_ones_never() -> None:
    """Of fewer units than at_least; what is found is counted from the next batch on."""
    counts: dict[Key, int] = {
        ("Zürich",): 500,
        ("small",): 4,
        ("N/A",): 500,
        ("=1+1",): 500,
        (" blank",): 500,
    }
    first, second, *_, last = days(KIND, counts, 30)
    assert [row["city"] for row in first.rows] == ["Zürich"]
    assert first.rows[0]["flag"] == NEW
    assert first.rows[0]["count"] is None
    assert [row["city"] for row in last.rows] == ["Zürich"]
    assert abs(int(second.rows[0]["count"] or 0) - 500) < 40
    assert last.rows[0]["found"] == "00"
    assert last.rows[0]["flag"] is None
    assert abs(float(last.rows[0]["smoothed"] or 0) - 500) < 5


def test_a_key_that_is_gone_is_quiet_and_stays_known() -> None:
    """It leaves the groups of other jobs, and comes back by itself."""
    state, entropy = KIND.init(), ReplayedEntropy()
    quiet, groups = [], []
    section = KeysSection(
        kind="keys", source="s", by=("city",), epsilon=Fraction(1), delta=KIND.delta
    )
    wanted = GroupsFrom.model_validate({"from": "cities", "most": 9, "at_least": 30})
    for day in range(60):
        plan = KIND.plan(state, Batch("s", f"{day:02}"))
        counts = {("a",): 300, ("b",): 0 if 10 <= day < 40 else 300}
        held = KeyCounts({key: n for key, n in counts.items() if n})
        outcome = KIND.draw(plan, held, entropy)
        state = KIND.learn(state, plan, outcome)
        quiet.append([row["city"] for row in outcome.rows if row["flag"] == QUIET])
        groups.append(list(groups_among(section, wanted, outcome.rows)))
        assert len(outcome.rows) == 2
    assert quiet[5] == []
    assert quiet[35] == ["b"]
    assert groups[35] == [("a",)]
    assert groups[0] == []
    assert sorted(groups[55]) == [("a",), ("b",)]


def test_public_keys_are_counted_from_the_start() -> None:
    """And come in order, when others are found."""
    kind = Keys(("city",), Price(Fraction(1)), Fraction(1, 10**6), public=(("here",),))
    first, second = days(kind, {("there",): 500}, 2)
    assert [(row["city"], row["found"]) for row in first.rows] == [("here", None), ("there", "00")]
    assert [row["count"] is None for row in second.rows] == [False, False]


@pytest.mark.parametrize(
    "text",
    [
        "a\u0308",
        "a\u202eb",
        "a\u200db",
        "a\x00",
        "\ud800",
        "\ue000",
        "a\n",
        "a ",
        "=a",
        "+1",
        "@a",
        "",
    ],
)
def test_a_text_that_deceives_is_not_published(text: str) -> None:
    """Decomposed, turned around, joined without width, control, half a sign, private, a formula."""
    assert not publishable((text,), 64)
    assert not publishable(("a", text), 64)


def test_ordinary_texts_are_published() -> None:
    """Letters of all scripts, signs within, up to so many bytes."""
    for text in ("Zürich", "東京", "(none)", "a=b", "😀", "O'Hare", "it, is", "ä" * 32, "1 000"):
        assert publishable((text,), 64), text
    assert not publishable(("ä" * 33,), 64)


def test_what_is_printable_is_refused_for_no_sign() -> None:
    """Of all signs there are, so that printable texts need not be looked at sign by sign."""
    signs = map(chr, range(sys.maxunicode + 1))
    assert not [x for x in signs if x.isprintable() and unicodedata.category(x) in REFUSED]


@given(st.lists(st.tuples(st.text(max_size=6), st.text(max_size=6))))
def test_a_state_names_keys_as_json_does(keys: list[Key]) -> None:
    """Each by itself, whatever signs are in its texts, and they are read back."""
    texts = key_texts(keys)
    assert texts == [json.dumps(key, ensure_ascii=False) for key in keys]
    assert keys_of(texts) == keys
