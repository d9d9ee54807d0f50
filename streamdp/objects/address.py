"""Addresses of objects: `s3://bucket/2026/*.parquet`, each in one form.

An object is known by its bucket and its key as the storage lists it. The server's name is no part
of that, since one server has many: an address, a path style and a host style. So two buckets of one
name on two servers are one place, which refuses one source too many and never pays for a record
from two budgets.
"""

from __future__ import annotations

import fnmatch
import glob
import re
from collections.abc import Sequence
from dataclasses import dataclass

SCHEMES = ("s3", "s3a", "s3n")
"""Words before `://` that all mean S3."""

OTHERS = ("gs", "gcs", "az", "abfs", "abfss", "wasb", "wasbs", "r2", "oss", "https", "http")
"""Words that mean objects somewhere, and are refused: no file is meant."""

LONGEST = 1024
"""Bytes of a key."""

_FORM = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<bucket>[^/]*)/?(?P<key>.*)", re.S)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")
_ALIAS = re.compile(r".*(-s3alias|--ol-s3|\.mrap)")
"""Other names that Amazon gives a bucket."""


@dataclass(frozen=True, slots=True)
class Address:
    """A pattern of keys in a bucket.

    Args:
        bucket: Its name.
        key: Key or pattern, as letters: nothing in it is percent-encoded.
    """

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    def folder(self) -> str:
        """Bucket and the parts of the key above the first wildcard and the last part."""
        parts = self.key.split("/")[:-1]
        magic = [at for at, part in enumerate(parts) if glob.has_magic(part)]
        return "/".join([self.bucket, *parts[: min(magic, default=len(parts))]])

    def matches(self, key: str) -> bool:
        """Whether the pattern has a key: the rules are those of paths (`streamdp.files`)."""
        return _matches(self.key.split("/"), key.split("/"))


def is_address(path: str) -> bool:
    """Whether a path names objects and no file.

    >>> is_address("S3://lake/a.parquet"), is_address("a/*.parquet"), is_address("demo:flights")
    (True, False, False)
    """
    found = _FORM.fullmatch(path)
    return found is not None and found["scheme"].lower() in (*SCHEMES, *OTHERS)


def parsed(text: str) -> Address:
    """The address that a text is.

    >>> str(parsed("s3a://bucket/day=*/part.parquet"))
    's3://bucket/day=*/part.parquet'

    Raises:
        ValueError: It is none, or another name of one.
    """
    found = _FORM.fullmatch(text)
    if found is None or found["scheme"].lower() not in SCHEMES:
        raise ValueError(
            "objects are read over S3: s3://bucket/folder/*.parquet; Google's storage speaks it at"
            " https://storage.googleapis.com (AWS_ENDPOINT_URL)"
        )
    bucket, key = found["bucket"], found["key"]
    if not _BUCKET.fullmatch(bucket) or _ALIAS.fullmatch(bucket):
        raise ValueError(
            "this is no name of a bucket: lower-case letters, digits, dots and hyphens; no alias,"
            " user, port or wildcard"
        )
    if not key:
        raise ValueError(f"this is a bucket alone: write s3://{bucket}/ and a key or folder")
    if not is_plain(key):
        raise ValueError(
            "keys are read that have no empty part, no . or .. as a part, no backslash and no"
            " control character: write them as the storage lists them"
        )
    return Address(bucket, key)


def folder_of(text: str) -> str:
    """The address of a folder that is written to.

    Raises:
        ValueError: It is none, or has wildcards.
    """
    if glob.has_magic(text):
        raise ValueError("an address that is written to has no wildcards")
    return str(parsed(text.rstrip("/")))


def identity(bucket: str, key: str) -> str:
    """Text that no other object has."""
    return f"object:{bucket}/{key}"


def is_plain(key: str) -> bool:
    """Whether a key has one spelling alone: clients and servers clean up others."""
    return (
        0 < len(key.encode("utf-8", "replace")) <= LONGEST
        and not any(part in ("", ".", "..") for part in key.split("/"))
        and key.isprintable()
        and "\\" not in key
    )


def _matches(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    if not pattern or not parts:
        return not pattern and not parts
    if pattern[0] == "**":
        rest = pattern[1:] or ["*"]
        return _matches(rest, parts) or (_fits("*", parts[0]) and _matches(pattern, parts[1:]))
    return _fits(pattern[0], parts[0]) and _matches(pattern[1:], parts[1:])


def _fits(pattern: str, part: str) -> bool:
    """No wildcard stands for a dot at the beginning."""
    if not glob.has_magic(pattern):
        return pattern == part
    return fnmatch.fnmatchcase(part, pattern) and (part[0] != "." or pattern[0] == ".")
