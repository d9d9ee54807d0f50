"""Code blocks of the documentation, and how each is run.

| the block begins | what is done with it |
|---|---|
| `sh` | run by bash, in the page's folder, after the blocks before it |
| `python` | run there too |
| `yaml config.yaml` | written there, and loaded |
| `yaml` | laid over the demonstration's configuration and those before it, and loaded |
| `sql store`, `sql warehouse`, `sql mariadb` | asked of the store, of PostgreSQL, of MariaDB |
| `console` | shown, not run: its commands and options are looked up |
| `text` | shown |
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from streamdp.cli import cli

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "deploy" / "docs"
GENERATED = ("configuration.md", "commands.md", "exit-codes.md", "events.md", "metrics.md")
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.name not in GENERATED)
KINDS = ("sh", "python", "yaml", "sql", "console", "text", "{include}", "{toctree}")


@dataclass(frozen=True)
class Block:
    """A fenced block: its first words, its text, and its line."""

    kind: str
    about: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    text = page.read_text()
    for found in re.finditer(r"^```(\S+) ?(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE):
        line = text[: found.start()].count("\n") + 1
        yield Block(found[1], found[2], found[3], line)


def typed(page: Path) -> Iterator[list[str]]:
    """Every call of `streamdp` on a page, in blocks and between backticks."""
    for block in blocks(page):
        if block.kind in ("sh", "console"):
            for line in block.text.splitlines():
                for part in re.split(r"&&|;|\|", line.removeprefix("$ ").removeprefix("! ")):
                    words = shlex.split(part, comments=True)
                    if words[:1] == ["streamdp"]:
                        yield words[1:]
    prose = re.sub(r"^```(?:.*\n)*?```$", "", page.read_text(), flags=re.MULTILINE)
    for code in re.findall(r"`streamdp ([^`]+)`", prose.replace("\n", " ")):
        yield shlex.split(code.split("&&")[0].replace("…", ""))


def unknown(words: list[str]) -> list[str]:
    """What a call names that there is not: the command, or its options."""
    if words[0].startswith("-") or words[0].isupper():
        return []
    context = click.Context(cli)
    command = cli.get_command(context, words[0])
    if command is None:
        return words[:1]
    if isinstance(command, click.Group) and len(words) > 1:
        command = command.get_command(context, words[1]) or command
    options = {name for each in command.params for name in each.opts} | {"--help"}
    return [word for word in words if word.startswith("-") and word not in options]
