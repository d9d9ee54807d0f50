"""When a file is safe: it is this user's own, behind no foreign link, and on the disk."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o600


def open_file(path: Path, flags: int, mode: int = PRIVATE) -> int:
    """Open a regular file, made with `mode` where the flags say so; return its descriptor.

    In a folder that others may write, a planted link or pipe would lead what is written elsewhere,
    or keep the process waiting: a link is followed only if this user or root has made it, and what
    is no regular file is refused.

    Raises:
        OSError: It cannot be opened, is another user's link, or no regular file.
    """
    safe = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    file = os.open(followed(path), flags | safe, mode)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "this is no regular file", str(path))
    except BaseException:
        os.close(file)
        raise
    return file


def lock(file: int, patience: float, pause: float) -> None:
    """Lock an open file for its holder alone; whoever else holds it may be suspended.

    Args:
        file: Its descriptor. Closing it gives the lock back.
        patience: Seconds to wait for another holder.
        pause: Seconds between tries.

    Raises:
        BlockingIOError: Another holds it still.
        OSError: The file system has no locks.
    """
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(pause)
        else:
            return


def read_text(path: Path, most: int) -> str:
    """Read a regular file of UTF-8 text; a pipe or a device could go on for ever.

    Args:
        path: Links are followed.
        most: Bytes.

    Raises:
        OSError: It cannot be read, is no regular file, or is longer.
        UnicodeDecodeError: It is no UTF-8.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "this is no regular file", str(path))
        read = opened.read(most + 1)
    if len(read) > most:
        raise OSError(errno.EFBIG, f"this file has more than {most} bytes", str(path))
    return read.decode()


def followed(path: Path) -> Path:
    """Where a path leads if it is a link of this user or of root; the path itself if it is none.

    Raises:
        OSError: It is a link that another user has made, or one that leads nowhere.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return path
    if not stat.S_ISLNK(found.st_mode):
        return path
    if found.st_uid not in (0, os.geteuid()):
        raise OSError(errno.ELOOP, "this is a link that another user has made", str(path))
    return Path(os.path.realpath(path))


NETWORKS = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "afs",
    "ceph",
    "gluster",
    "lustre",
    "beegfs",
    "sshfs",
    "gfs",
)
"""Beginnings of the names of file systems that several hosts share."""

MOUNTS = Path("/proc/self/mountinfo")


def shared_by_hosts(folder: Path) -> str:
    """Name of the file system of a folder if several hosts may share it; nothing where unknown."""
    device = folder.resolve().stat().st_dev
    place = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = MOUNTS.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        about, _, kinds = line.partition(" - ")
        kind = kinds.split(" ")[0]
        if about.split(" ")[2:3] == [place] and kind.removeprefix("fuse.").startswith(NETWORKS):
            return kind
    return ""


def keep_private(file: int) -> None:
    """Take the permissions of others from a file that may have been there before."""
    found = os.fstat(file)
    if found.st_mode & 0o077 and found.st_uid == os.geteuid():
        os.fchmod(file, PRIVATE)


def write_new(path: Path, fill: Callable[[int], None], mode: int = PRIVATE) -> None:
    """Make a file that is not there yet, and wait until it is on the disk.

    Args:
        path: Of the file.
        fill: Writes the content into an open file, given its descriptor.
        mode: Of the file, whatever the umask.

    Raises:
        OSError: It is there, or cannot be written.
    """
    file = open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
    try:
        os.fchmod(file, mode)
        fill(file)
        os.fsync(file)
    finally:
        os.close(file)


def write_whole(path: Path, fill: Callable[[int], None], mode: int = PRIVATE) -> None:
    """Make a file that is whole and on the disk, or not there: written beside, then named.

    What has the name of the unfinished file is of an attempt that was cut off, and is put away.

    Args:
        path: Of the file; another one of this name is replaced.
        fill: As in `write_new`.
        mode: Of the file, whatever the umask.

    Raises:
        OSError: It cannot be written; no unfinished file is left.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.unlink(missing_ok=True)
        write_new(unfinished, fill, mode)
        unfinished.replace(path)
        sync(path.parent)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def make_folder(path: Path, mode: int) -> None:
    """Make a folder that is not there: who may read files of this mode may enter it."""
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode | (mode & 0o444) >> 2)


def sync(path: Path) -> None:
    """Wait until a file is on the disk; of a folder, the names in it."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
