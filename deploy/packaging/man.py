"""The manual page streamdp(1), made of the commands: `python deploy/packaging/man.py`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import click

from streamdp import __version__
from streamdp.cli import COMMANDS, EXIT_CODES, cli

FILES = (
    ("config.yaml", "The configuration, or what STREAMDP_CONFIG or --config names."),
    ("streamdp.db", "The store: budget, releases, learned states. Its key is store.path."),
    ("streamdp.db.anchor", "Tells of a store that is not the newest. Its key is store.anchor."),
)


def page() -> str:
    """The whole page, in the macros of man(7)."""
    lines = [
        f'.TH STREAMDP 1 "" "streamdp {__version__}" "User Commands"',
        ".SH NAME",
        "streamdp \\- differentially private statistics of every new batch, on a schedule",
        ".SH SYNOPSIS",
        ".B streamdp",
        ".I COMMAND",
        "[options]",
        ".SH DESCRIPTION",
        *paragraphs(cli.help or ""),
        ".SH COMMANDS",
    ]
    context = click.Context(cli, info_name="streamdp")
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None, name
        lines += section(command, click.Context(command, parent=context, info_name=name))
    lines.append(".SH EXIT STATUS")
    for line in EXIT_CODES.splitlines()[2:]:
        code, meaning = line.split(None, 1)
        lines += [".TP", f".B {code}", escaped(meaning)]
    lines.append(".SH FILES")
    for path, meaning in FILES:
        lines += [".TP", f".I {escaped(path)}", escaped(meaning)]
    return "\n".join(lines) + "\n"


def section(command: click.Command, context: click.Context) -> Iterator[str]:
    """A command: how it is called, what it does, its options; then the commands below it."""
    pieces = " ".join(command.collect_usage_pieces(context))
    yield f".SS {escaped(context.command_path)} {escaped(pieces)}"
    yield from paragraphs(command.help or "")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1] and "--help" not in parameter.opts:
            yield from (".TP", f".B {escaped(record[0])}", escaped(record[1]))
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from section(inner, click.Context(inner, parent=context, info_name=name))


def paragraphs(text: str) -> Iterator[str]:
    """Text of a docstring; blocks that click leaves as they are stay so."""
    for paragraph in re.split(r"\n\s*\n", "\n".join(map(str.strip, text.splitlines())).strip()):
        yield ".PP"
        if paragraph.startswith("\b"):
            yield from (".nf", *map(escaped, paragraph.lstrip("\b").strip().splitlines()), ".fi")
        else:
            yield escaped(paragraph.replace("\n", " "))


def escaped(text: str) -> str:
    """Text that roff prints as it is: backslashes, hyphens, and dots that begin a line."""
    plain = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    letters = "".join(each if each.isascii() else f"\\[u{ord(each):04X}]" for each in plain)
    return f"\\&{letters}" if letters[:1] in (".", "'") else letters


if __name__ == "__main__":
    sys.stdout.write(page())
