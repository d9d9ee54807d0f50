"""Views of a database that compute: what they fail at burns a charge, and `doctor` says so."""

from __future__ import annotations

from collections.abc import Mapping

_WORDS = (
    "Select From Table TableAlias Alias Where Column Identifier Star Paren And Or Not EQ NEQ GT GTE"
    " LT LTE Is Null Boolean Literal In Between NullSafeEQ NullSafeNEQ Tuple DataType DataTypeParam"
    " Coalesce Case If"
)
_PLAIN = frozenset(_WORDS.split())
"""Names of sqlglot's classes that fail on no record."""


def computes(definition: str, dialect: str) -> bool:
    """Whether a view does more than choose rows and columns.

    Args:
        definition: Its SELECT, or how it was made.
        dialect: Of the engine, as sqlglot calls it.

    >>> computes("SELECT a, b AS c FROM t WHERE a > 1", "postgres")
    False
    >>> computes("SELECT a::int FROM t", "postgres")
    True
    """
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(definition, read=dialect)
    except sqlglot.errors.SqlglotError:
        return True
    if isinstance(tree, exp.Create):
        tree = tree.expression
    return any(
        type(node).__name__ not in _PLAIN and node.find(exp.Column) is not None
        for node in tree.walk()
    )


def beneath(select: str, definitions: Mapping[str, str], dialect: str) -> list[str]:
    """Names of the views that a SELECT reads, and of those that these read.

    Args:
        select: It.
        definitions: By the name of a view in lower case, how it was made.
        dialect: Of the engine, as sqlglot calls it.

    >>> beneath("FROM above", {"above": "CREATE VIEW above AS FROM v", "v": "FROM t"}, "duckdb")
    ['above', 'v']
    """
    import sqlglot
    from sqlglot import exp

    found: dict[str, None] = {}
    waiting = [select]
    while waiting:
        try:
            tree = sqlglot.parse_one(waiting.pop(), read=dialect)
        except sqlglot.errors.SqlglotError:
            continue
        for table in tree.find_all(exp.Table):
            name = table.name.lower()
            if name in definitions and name not in found:
                found[name] = None
                waiting.append(definitions[name])
    return list(found)


def notice(view: str) -> str:
    """What to know of a view that computes."""
    return (
        f"the view {view} computes: a record that it fails at burns the charge; write it so that it"
        " is null there, or compute in `query`"
    )
