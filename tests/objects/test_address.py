"""An address has one form, and its pattern finds what the same pattern finds among files."""

from __future__ import annotations

import glob
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.backends.spark import stored_at
from streamdp.objects import identity, is_address, parsed

SAME = (
    *("s3://lake/a/b.parquet", "S3://lake/a/b.parquet", "s3a://lake/a/b.parquet"),
    *("s3n://lake/a/b.parquet", "S3A://lake/a/b.parquet"),
)
REFUSED = (
    *("s3://lake//a/b.parquet", "s3://lake/a//b.parquet", "s3:///lake/a/b.parquet"),
    *("s3://lake/./a/b.parquet", "s3://lake/a/../a/b.parquet", "s3://lake/../lake/a/b.parquet"),
    *("s3://lake/a/b.parquet/", "s3://lake", "s3://lake/", "s3://", "s3://Lake/a/b.parquet"),
    *("s3://LAKE/a/b.parquet", "s3://lake:9000/a/b.parquet", "s3://user@lake/a/b.parquet"),
    *("s3://key:secret@lake/a/b.parquet", "s3://*/a/b.parquet", "s3://la?e/a/b.parquet"),
    *("s3://lake-s3alias/a/b.parquet", "s3://lake--ol-s3/a/b.parquet", "s3://lake.mrap/a"),
    *("s3://arn:aws:s3:eu-west-1:1:accesspoint/a/b.parquet", "s3://lake\\a\\b.parquet"),
    *("s3://lake/a\\b.parquet", "s3://lake/a\tb.parquet", "s3://lake/a\nb.parquet", "s3://l/a"),
    *(" s3://lake/a/b.parquet", "s3:/lake/a/b.parquet", "s3:lake/a", "https://lake/a/b.parquet"),
    *("s3://lake/" + "k" * 1025, "gs://lake/a/b.parquet", "abfss://lake@account/a/b.parquet"),
)


def test_spellings_of_one_address_have_one_form() -> None:
    assert {str(parsed(each)) for each in SAME} == {"s3://lake/a/b.parquet"}


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_a_second_spelling_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"over S3|bucket|keys"):
        parsed(text)


def test_nothing_is_decoded() -> None:
    """%61 is three letters, as in the storage's own tools; a plus is a plus."""
    assert parsed("s3://lake/%61+b.parquet").key == "%61+b.parquet"
    assert not parsed("s3://lake/%61.parquet").matches("a.parquet")


def test_a_table_of_spark_over_objects_is_known_as_they_are() -> None:
    """Spark encodes what it calls its files; the objects are those of a source over S3."""
    for word in ("s3", "s3a", "s3n"):
        named = set(stored_at([f"{word}://lake/in/a%20%2541.parquet"]))
        assert identity("lake", parsed("s3://lake/in/a %41.parquet").key) in named


def test_paths_are_no_addresses() -> None:
    for path in ("data/*.parquet", "file:///data/x", "demo:flights", "s3/x", "s3:/x", "C:\\x"):
        assert not is_address(path)


NAMES = st.lists(st.sampled_from("ab.[]*?-1"), min_size=1, max_size=3).map("".join)
PARTS = NAMES.filter(lambda name: name not in (".", ".."))
KEYS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
PATTERNS = st.lists(PARTS | st.just("**") | st.just("*"), min_size=1, max_size=3).map("/".join)


@settings(max_examples=300, deadline=None)
@given(keys=st.lists(KEYS, min_size=1, max_size=6), pattern=PATTERNS)
def test_a_pattern_finds_what_it_finds_among_files(
    tmp_path_factory: pytest.TempPathFactory, keys: list[str], pattern: str
) -> None:
    """The rules are those of paths, for every pattern and tree."""
    folder = tmp_path_factory.mktemp("tree")
    made = []
    for key in keys:
        try:
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            (folder / key).touch()
        except OSError:
            continue
        made.append(key)
    among = glob.glob(f"{glob.escape(str(folder))}/{pattern}", recursive=True)
    files = {os.path.relpath(path, folder) for path in among if _is_object(path)}
    address = parsed(f"s3://lake/{pattern}")
    kept = {key for key in made if (folder / key).is_file()}
    assert {key for key in kept if address.matches(key)} == files


def _is_object(path: str) -> bool:
    """Of files, `a/**` finds `a/` too, which is no key of an object."""
    return not path.endswith("/") and Path(path).is_file()
