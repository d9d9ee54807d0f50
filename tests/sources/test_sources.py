"""Sources: which batches there are follows from public facts."""

from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from streamdp.sources.files import FileSource
from streamdp.sources.windows import DAY, WindowSource


@given(
    start=st.integers(0, 2**31),
    length=st.integers(1, 10 * DAY),
    lateness=st.integers(0, DAY),
    now=st.integers(0, 50 * DAY),
)
def test_windows_tile_time_without_gap_or_overlap(
    start: int, length: int, lateness: int, now: int
) -> None:
    """Each window begins where the last ended, has the length, and ended `lateness` ago."""
    source = WindowSource("s", start, max(length, now // 500 + 1), None, lateness)
    batches = list(source.batches(start + now))
    expected = start
    for batch in batches:
        assert (batch.start, batch.end) == (expected, expected + source.length)
        assert expected + source.length + lateness <= start + now
        expected += source.length
    assert expected + source.length + lateness > start + now
    assert len({batch.key for batch in batches}) == len(batches)


def test_every_day_is_a_day() -> None:
    """Windows are integers of UTC: a leap year has 366 keys, clock changes or not."""
    start = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())
    batches = list(WindowSource("s", start, DAY, start + 366 * DAY).batches(start + 1000 * DAY))
    assert len(batches) == 366
    assert batches[90].key == "2024-03-31"
    assert batches[-1].key == "2024-12-31"


def test_hours_have_keys_with_time() -> None:
    """Windows shorter than a day carry their hour."""
    (batch,) = WindowSource("s", 0, 3600).batches(3600)
    assert batch.key == "1970-01-01T00:00:00Z"


def test_files_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    """One file a batch; folders are no batches; the key is the path below the fixed part."""
    for name in ("b.csv", "a.csv", "sub/c.csv", "note.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n1\n")
    (tmp_path / "d.csv").mkdir()
    flat = FileSource("s", f"{tmp_path}/*.csv")
    assert [batch.key for batch in flat.batches(0)] == ["a.csv", "b.csv"]
    deep = FileSource("s", f"{tmp_path}/**/*.csv")
    assert [batch.key for batch in deep.batches(0)] == ["a.csv", "b.csv", "sub/c.csv"]
