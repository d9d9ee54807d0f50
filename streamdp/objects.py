"""Objects of a storage that speaks S3: their addresses, which there are, and their bytes.

An address is `s3://bucket/2026/*.parquet`, each in one form. An object is known by its bucket and
its key as the storage lists it. The server's name is no part of that, since one server has many: an
address, a path style and a host style. So two buckets of one name on two servers are one place,
which refuses one source too many and never pays for a record from two budgets.

Bytes come through Arrow's file system. Credentials are looked for where Amazon's library does: in
the environment, its own files and the instance. None is ever handed through here, and errors are
told in words of our own.
"""

from __future__ import annotations

import fnmatch
import functools
import glob
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

from streamdp.errors import SourceError
from streamdp.types import File

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

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


ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Variables that name an S3-compatible server, as Amazon's own tools read them."""

ATTEMPTS = 3
"""Attempts of the library of S3 at one request."""

CHUNK = 2**23
"""Bytes that are asked for at once."""

_REFUSED = (
    *("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "EXPIRED_TOKEN"),
    *("INVALID_CLIENT_TOKEN_ID", "MISSING_AUTHENTICATION_TOKEN", "HTTP status 403"),
)
_UNREACHED = ("NETWORK_CONNECTION", "REQUEST_TIMEOUT", "curlCode")


def listed(address: Address) -> tuple[File, ...]:
    """Objects whose keys a pattern has, in the order of their keys.

    Raises:
        SourceError: The storage cannot be asked, or has no such bucket.
    """
    from pyarrow.fs import FileSelector, FileType

    folder = address.folder()
    deep = len(address.key.split("/")) > folder.count("/") + 1 or "**" in address.key
    with _asked(str(address)):
        storage = _file_system()
        found = storage.get_file_info(FileSelector(folder, allow_not_found=True, recursive=deep))
        missing = not found and storage.get_file_info(address.bucket).type == FileType.NotFound
    if missing:
        raise SourceError(
            "the storage has no such bucket, or does not show it", where=str(address), hint=_HINT
        )
    objects = {info.path.partition("/")[2]: info for info in found if info.type == FileType.File}
    keys = sorted(key for key in objects if is_plain(key) and address.matches(key))
    return tuple(_file(address, key, objects[key]) for key in keys)


def etag(file: File) -> bytes:
    """Name of the content of an object in the storage; another content has another.

    Raises:
        SourceError: It cannot be asked, or does not say.
    """
    with _asked(file.path), _opened(file) as opened:
        return _etag(opened, file)


def copy(file: File, into: BinaryIO) -> None:
    """Write all bytes of an object.

    Raises:
        SourceError: It cannot be read, or is another than when it was listed.
    """
    with _asked(file.path):
        with _opened(file) as opened:
            before, written = _etag(opened, file), 0
            while written < _size(file):
                chunk = _read(opened, written, min(CHUNK, _size(file) - written))
                if not chunk:
                    break
                written += into.write(chunk)
        now = _file_system().get_file_info(_path_of(file.path))
    into.flush()
    if not _is_as_listed(now, file) or etag(file) != before:
        raise SourceError(
            "an object was changed while it was read",
            where=file.path,
            hint="leave objects as they are once they are written",
        )
    if written != _size(file):
        raise SourceError(
            f"the storage sent less than the {_size(file)} bytes of an object",
            where=file.path,
            hint="look at the storage, or at what stands between it and this machine",
        )


def write(address: Address, content: BinaryIO) -> None:
    """Write an object; it is there when all of it is.

    Args:
        address: Of the object.
        content: Open file, read from where it stands.

    Raises:
        SourceError: The storage cannot be reached, or refuses.
    """
    path = _path_of(str(address))
    with (
        _asked(str(address)),
        _file_system().open_output_stream(path, compression=None) as stream,
    ):
        shutil.copyfileobj(content, stream, CHUNK)


def remove(file: File) -> None:
    """Remove an object.

    Raises:
        SourceError: The storage cannot be reached, or refuses.
    """
    with _asked(file.path):
        _file_system().delete_file(_path_of(file.path))


def _file(address: Address, key: str, info: FileInfo) -> File:
    return File(
        f"s3://{address.bucket}/{key}",
        identity(address.bucket, key),
        _state(info),
        _second(info),
    )


def _second(info: FileInfo) -> int:
    return (info.mtime_ns or 0) // 10**9


def _state(info: FileInfo) -> str:
    return f"{info.size}:{info.mtime_ns}"


def _read(opened: Any, first: int, size: int) -> bytearray:
    """Read so many bytes of an object; none if fewer came.

    Arrow's library takes the length of a body for granted, and leaves what did not come as it was.
    So a last byte that is what was put there before is read again over another.
    """
    for before in (b"\0", b"\xff"):
        chunk = bytearray(before) * size
        opened.seek(first)
        if opened.readinto(chunk) == size and bytes(chunk[-1:]) != before:
            return chunk
    return bytearray()


def _size(file: File) -> int:
    """Bytes of an object when it was listed."""
    return int(file.state.split(":")[0])


def _is_as_listed(info: FileInfo, file: File) -> bool:
    """Size and second of the last change; a look at one object tells no more than the second."""
    return info.size == _size(file) and _second(info) == file.changed


def _etag(opened: Any, file: File) -> bytes:
    said = {name.lower(): value for name, value in (opened.metadata() or {}).items()}
    found = said.get(b"etag", said.get("etag"))
    if not found:
        raise SourceError(
            "the storage gives no ETag of an object",
            where=file.path,
            hint="without one a changed object is not told from the one that arrived",
        )
    return found if isinstance(found, bytes) else str(found).encode()


def _opened(file: File) -> Any:
    return _file_system().open_input_file(_path_of(file.path))


def _path_of(address: str) -> str:
    return address.removeprefix("s3://")


def _file_system() -> FileSystem:
    return _connected(next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), ""))


@functools.cache
def _connected(endpoint: str) -> FileSystem:
    """The file system of a storage; it connects when it is asked.

    Raises:
        SourceError: The endpoint is no server's address.
    """
    import pyarrow.fs

    place = urlsplit(endpoint)
    if endpoint and (
        place.scheme.lower() not in ("http", "https")
        or not place.hostname
        or "@" in place.netloc
        or place.path.strip("/")
        or place.query
    ):
        raise SourceError(
            "the endpoint of the storage is no server's address",
            where=" or ".join(ENDPOINTS),
            hint="https://storage.example:9000, without a user, a bucket or a path behind it",
        )
    return pyarrow.fs.S3FileSystem(
        scheme=place.scheme.lower() or None,
        endpoint_override=place.netloc or None,
        retry_strategy=pyarrow.fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
    )


_HINT = "may this user list the bucket and read its objects?"


@contextmanager
def _asked(where: str) -> Iterator[None]:
    """Replace the library's errors: their texts quote answers of a server.

    Raises:
        SourceError: Says which of a few causes it was.
    """
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        text = str(error)
        what, hint = "the storage cannot be read", _HINT
        if isinstance(error, FileNotFoundError):
            what, hint = "an object is gone", "leave objects where they are while they are read"
        elif any(word in text for word in _REFUSED):
            what = "the storage refuses this user"
            hint = "are the credentials right, and may their user list the bucket and read objects?"
        elif any(word in text for word in _UNREACHED):
            what = "the storage cannot be reached"
            hint = f"is it there? {ENDPOINTS[1]} names a server that is not Amazon's"
        raise SourceError(what, where=where, hint=hint) from None
