"""Packages of others, laid on the path of a test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from streamdp.registry import Registry


def offer(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    registry: Registry[Any],
    module: str,
    code: str,
    offers: Mapping[str, str],
) -> None:
    """Install a package of one module that offers some names.

    Args:
        folder: An empty one.
        monkeypatch: Takes it from the path when the test is over.
        registry: Looks for offers anew; the caller lets it forget them in the end.
        module: Its name, which no other test has: a process imports a module once.
        code: Of the module.
        offers: Names in the module by the names that are offered.
    """
    about = folder / f"{module}-1.0.dist-info"
    about.mkdir()
    package = module.replace("_", "-")
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {module}:{what}\n" for name, what in offers.items())
    (about / "entry_points.txt").write_text(f"[{registry.group}]\n{lines}")
    (folder / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(str(folder))
    registry.forget()
