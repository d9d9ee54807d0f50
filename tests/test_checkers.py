"""Checkers of others are content with what is shipped, where they are installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.test_package import wheel

ROOT = Path(__file__).parents[1]
MANIFESTS = ("networkpolicy", "poddisruptionbudget", "service", "statefulset")

CHECKS = {
    "hadolint": ["deploy/container/Dockerfile"],
    "kubernetes-validate": [
        "--strict",
        *(f"deploy/kubernetes/{name}.yaml" for name in MANIFESTS),
    ],
}

__all__ = ["wheel"]


def _content(command: str, *words: str) -> None:
    if shutil.which(command) is None:
        pytest.skip(f"no {command} here")
    ended = subprocess.run([command, *words], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("command", CHECKS)
def test_a_checker_is_content_with_what_is_deployed(command: str) -> None:
    """hadolint with the Dockerfile, strict schemas with the manifests."""
    _content(command, *CHECKS[command])


@pytest.mark.parametrize(("unit", "exposure"), [("streamdp", 20), ("streamdp-once", 35)])
def test_units_are_hardened(unit: str, exposure: int) -> None:
    """Tenths of the exposure level that systemd computes; 100 is no protection at all."""
    path = f"deploy/systemd/{unit}.service"
    _content("systemd-analyze", "security", "--offline=true", f"--threshold={exposure}", path)


@pytest.mark.parametrize("command", ["twine", "check-wheel-contents"])
def test_a_checker_is_content_with_the_wheel(wheel: Path, command: str) -> None:
    """As an index would show it, and nothing in it that belongs elsewhere."""
    _content(command, *(["check", "--strict"] if command == "twine" else []), str(wheel))
