"""What the build adds to the sources: the commit they are of, and the manual page.

The commit is that of the checkout, or the variable STREAMDP_COMMIT where there is none (in a
container). A source distribution carries it to the wheel that is built from it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMMIT = "streamdp/commit.txt"


class StreamdpBuildHook(BuildHookInterface[Any]):
    """See the module."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add both files, which are made in a folder that `finalize` removes.

        An editable installation gets neither: its checkout says what it is.
        """
        self.made = tempfile.TemporaryDirectory()
        if version == "editable":
            return
        root = Path(self.root)
        commit = "" if (root / COMMIT).exists() else commit_of(root)
        if commit:
            build_data["force_include"][self._write("commit.txt", commit + "\n")] = COMMIT
        if self.target_name == "wheel":
            page = self._write("streamdp.1", manual(root))
            build_data["shared_data"][page] = "share/man/man1/streamdp.1"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made."""
        self.made.cleanup()

    def _write(self, name: str, text: str) -> str:
        path = Path(self.made.name) / name
        path.write_text(text, encoding="utf-8")
        return str(path)


def commit_of(root: Path) -> str:
    """The commit of a checkout, with `-dirty` if it was changed; empty where nothing tells."""
    said = os.environ.get("STREAMDP_COMMIT", "")
    if said or not (root / ".git").exists():
        return said
    describe = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
    try:
        told = subprocess.run(describe, cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return told.stdout.strip()


def manual(root: Path) -> str:
    """The manual page, from the commands of these sources."""
    sys.path[:0] = [str(root), str(Path(__file__).parent)]
    try:
        from man import page

        return page()
    finally:
        del sys.path[:2]
