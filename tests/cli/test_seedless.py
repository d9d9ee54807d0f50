"""Nobody can choose the chance of a release: there is no seed, and no other source of bits."""

from __future__ import annotations

import ast
import json
from pathlib import Path

from streamdp.cli import COMMANDS, cli
from streamdp.config.model import json_schema

ROOT = Path(__file__).parents[2] / "streamdp"

SIMULATING = {"simulate", "simulation"}
"""Where the data are synthetic or public, and nothing is released."""


def test_no_command_that_releases_takes_a_seed() -> None:
    """Of all commands `simulate` alone has one; it refuses tables of production."""
    context = cli.make_context("streamdp", ["--help"], resilient_parsing=True)
    commands = {name: cli.get_command(context, name) for name in COMMANDS}
    with_seed = {
        name
        for name, command in commands.items()
        if command and any("seed" in (parameter.name or "") for parameter in command.params)
    }
    assert all(commands.values())
    assert with_seed <= {"simulate"}


def test_no_key_of_the_configuration_is_a_seed() -> None:
    """Nor is one called so in a section."""
    assert "seed" not in json.dumps(json_schema()).lower()


def test_production_has_one_source_of_bits() -> None:
    """No class but the operating system's entropy has a method `bits`, simulation left out."""
    found = [
        f"{path.stem}.{node.name}"
        for path in ROOT.rglob("*.py")
        if not SIMULATING & {*path.relative_to(ROOT).parts, path.stem}
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and any(isinstance(each, ast.FunctionDef) and each.name == "bits" for each in node.body)
    ]
    assert sorted(found) == ["draws.OperatingSystemEntropy", "protocols.Entropy"]
