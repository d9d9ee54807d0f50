"""Pages of the reference, made of the code: keys, commands, exit codes, events, metrics."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
import yaml

from streamdp.cli import COMMANDS, EXIT_CODES, cli
from streamdp.config import json_schema, load
from streamdp.log import EVENTS

Schema = dict[str, Any]


def pages() -> dict[str, str]:
    """Text of each generated page by the name of its file."""
    return {
        "configuration.md": configuration(),
        "commands.md": commands(),
        "exit-codes.md": exit_codes(),
        "events.md": events(),
        "metrics.md": metrics(),
    }


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    r"""A Markdown table.

    >>> print(table(("a", "b"), [("1", "x | y")]))
    | a | b |
    |---|---|
    | 1 | x \| y |
    """
    rule = "|" + "---|" * len(head)
    first, *others = (
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) + " |"
        for row in (head, *rows)
    )
    return "\n".join((first, rule, *others))


@dataclass(frozen=True)
class Place:
    """Where a section may stand.

    Args:
        path: Keys that lead there, with NAME for what the user calls it.
        which: What tells it from other sections of that place; empty where there is one.
    """

    path: str
    which: str = ""

    @property
    def title(self) -> str:
        """Heading: the path, and which section it is."""
        return f"{self.path} {self.which}".strip()

    def link(self) -> str:
        """A link to the heading, by what tells it."""
        anchor = re.sub(r"[^\w\- ]", "", self.title.lower()).replace(" ", "-")
        return f"[{self.which or self.path}](#{anchor})"


def configuration() -> str:
    """Every key, section by section, of the JSON Schema that `streamdp schema` prints."""
    schema = json_schema()
    definitions: Schema = schema["$defs"]
    places = _places(schema, definitions)
    titles = [place.title for place in places.values()]
    assert len(set(titles)) == len(definitions), "each section has a heading of its own"
    parts = [
        "# Configuration",
        "Every key of `config.yaml`. `streamdp schema` prints the same as a JSON Schema, which"
        " editors read. A duration is a whole number and a unit: `30s`, `5m`, `6h`, `1d`, `2w`."
        " Epsilons and shares may be written as fractions: `1/3`. NAME is a name of your own.",
        "## The file",
        _section(schema, places),
    ]
    for name, place in places.items():
        parts += [f"## {place.title}", _section(definitions[name], places)]
    return "\n\n".join(parts) + "\n"


def _places(schema: Schema, definitions: Schema) -> dict[str, Place]:
    """Where each definition stands first, in the order of reading."""
    found: dict[str, Place] = {}

    def walk(section: Schema, path: str) -> None:
        for key, value in _keys(section).items():
            for inner, names in _sections(value, f"{path}.{key}".lstrip(".")).items():
                for name in names:
                    if name not in found:
                        which = "" if len(names) == 1 else _which(definitions[name])
                        found[name] = Place(inner, which)
                        walk(definitions[name], inner)

    walk(schema, "")
    return found


def _keys(section: Schema) -> Schema:
    """Keys of a section; NAME where it takes those of your own beside them."""
    own = section.get("additionalProperties")
    return section.get("properties", {}) | ({"NAME": own} if isinstance(own, dict) else {})


def _sections(value: Any, path: str) -> dict[str, list[str]]:
    """Names of the definitions that a value may be, by their paths."""
    found: dict[str, list[str]] = {}
    if isinstance(value, list):
        parts = [(each, path) for each in value]
    elif "$ref" in value:
        return {path: [value["$ref"].rpartition("/")[2]]}
    else:
        parts = [(value[key], path) for key in ("oneOf", "anyOf", "items") if key in value]
        named = [*value.get("patternProperties", {}).values(), value.get("additionalProperties")]
        parts += [(each, f"{path}.NAME") for each in named if isinstance(each, dict)]
    for part, inner in parts:
        for where, names in _sections(part, inner).items():
            found[where] = list(dict.fromkeys([*found.get(where, []), *names]))
    return found


def _which(section: Schema) -> str:
    """What tells a section from the others of its place: its kind, or a key that it must have."""
    kind = section["properties"].get("kind", {})
    kinds = kind.get("enum") or [kind.get("const")]
    if kinds != [None]:
        return "of kind " + " or ".join(kinds)
    return f"with {[*section.get('required', ()), *section['properties']][0]}"


def _section(section: Schema, places: dict[str, Place]) -> str:
    required = set(section.get("required", ()))
    rows = [
        (
            f"`{key}`" + (" (required)" if key in required else ""),
            _kind(value, places),
            value.get("description", "") + _examples(value),
        )
        for key, value in _keys(section).items()
    ]
    about = section.get("description", "")
    return "\n\n".join(filter(None, (about, table(("key", "is", "meaning"), rows) if rows else "")))


def _examples(value: Schema) -> str:
    """Examples as they stand in the YAML."""
    found = [
        yaml.safe_dump(example, default_flow_style=True, allow_unicode=True, width=10**6)
        for example in value.get("examples", ())
    ]
    texts = [text.removesuffix("...\n").strip() for text in found]
    return " Example: " + ", ".join(f"`{text}`" for text in texts) + "." if texts else ""


def _kind(value: Schema, places: dict[str, Place]) -> str:
    """What a value is, in a few words, with links to the sections it may be."""
    if "$ref" in value:
        return places[value["$ref"].rpartition("/")[2]].link()
    for several in ("oneOf", "anyOf"):
        if several in value:
            kinds = [_kind(each, places) for each in value[several]]
            return " or ".join(dict.fromkeys(kind for kind in kinds if kind != "null"))
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return " or ".join(f"`{each}`" for each in value["enum"])
    kind = value.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {_kind(value['items'], places)}" if value.get("items") else "list"
    named = [*value.get("patternProperties", {}).values(), value.get("additionalProperties")]
    if kind == "object" and isinstance(named[0], dict):
        each = _kind(named[0], places)
        return f"names, each {each if each.startswith(('[of', '[with')) else f'with {each}'}"
    return {"object": "section", "string": "text", "boolean": "true or false"}.get(kind, kind)


def commands() -> str:
    """Help of every command, as `streamdp COMMAND --help` prints it."""
    parts = ["# Commands", "Each prints this with `--help`."]
    context = click.Context(cli, info_name="streamdp", max_content_width=88)
    for name in COMMANDS:
        parts += [f"## {name}", *_help(name, context)]
    return "\n\n".join(parts) + "\n"


def _help(name: str, parent: click.Context) -> Iterator[str]:
    command = cli.get_command(parent, name)
    assert command is not None, name
    within = click.Context(command, parent=parent, info_name=name, max_content_width=88)
    yield f"```text\n{command.get_help(within)}\n```"
    for inner in getattr(command, "commands", {}).values():
        deeper = click.Context(inner, parent=within, info_name=inner.name, max_content_width=88)
        yield f"```text\n{inner.get_help(deeper)}\n```"


def exit_codes() -> str:
    """The table at the end of `streamdp --help`."""
    rows = [tuple(line.split(None, 1)) for line in EXIT_CODES.splitlines()[2:]]
    return "# Exit codes\n\n" + table(("code", "meaning"), rows) + "\n"


def events() -> str:
    """The closed list of what may be logged."""
    rows = [
        (f"`{name}`", event.level, ", ".join(f"`{f}`" for f in sorted(event.fields)), event.meaning)
        for name, event in EVENTS.items()
    ]
    about = (
        "What the log may hold. Another event or field is dropped, and `log.refused` tells of it."
    )
    return f"# Events\n\n{about}\n\n" + table(("event", "level", "fields", "meaning"), rows) + "\n"


def metrics() -> str:
    """Families of `/metrics`, as the page of an empty store gives them."""
    rows = [
        (f"`{name}`", kind, ", ".join(f"`{label}`" for label in labels), about)
        for name, kind, labels, about in _families()
    ]
    about = "What `/metrics` gives to Prometheus. All follow from ledger, configuration and clock."
    return f"# Metrics\n\n{about}\n\n" + table(("metric", "type", "labels", "meaning"), rows) + "\n"


def _families() -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Name, type, labels and meaning of each metric."""
    from streamdp.store.anchor import default_anchor
    from streamdp.store.verified_open import open_store
    from streamdp.web.metrics import Facts
    from streamdp.web.reader import Reader

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(files("streamdp").joinpath("demo", "config.yaml").read_text())
        configuration = load(path)
        store = configuration.store.path
        open_store(store, default_anchor(store), now=0)[0].close()
        with Reader(path, configuration, lambda configuration, job: ()).look() as view:
            for family in Facts(view).collect():
                suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
                labels = tuple(getattr(family, "_labelnames", ()))
                yield family.name + suffix, family.type, labels, family.documentation


if __name__ == "__main__":
    sys.stdout.write("\n".join(pages().values()))
