"""What a table of PostgreSQL leads to: what of it could fail on a record is refused by the catalog.

A virtual generated column is computed as it is read, a foreign table is read by another server's
rules, and a policy for rows is an expression like any other. A function or operator of another
schema may take the place of PostgreSQL's own, wherever the search path says so.

Privacy: catalogs are public, and are asked before a charge.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import psycopg

VIRTUAL = 180000
"""Server version from which on columns may be computed as they are read."""

_REACHED = (
    "WITH RECURSIVE reached AS ("
    " SELECT to_regclass(%(table)s)::oid AS oid, 0::int2 AS attnum"
    " UNION SELECT attrelid, attnum FROM pg_attribute"
    " WHERE attrelid = to_regclass(%(table)s) AND attname = ANY(%(named)s)"
    " UNION SELECT below.oid, below.attnum FROM reached JOIN pg_class c ON c.oid = reached.oid,"
    " LATERAL (SELECT refobjid AS oid, refobjsubid::int2 AS attnum FROM pg_rewrite w"
    " JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid"
    " AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> w.ev_class"
    " WHERE w.ev_class = reached.oid AND c.relkind = 'v'"
    " UNION ALL SELECT inhrelid, coalesce(part.attnum, 0::int2) FROM pg_inherits"
    " LEFT JOIN pg_attribute whole ON whole.attrelid = inhparent AND whole.attnum = reached.attnum"
    " AND whole.attnum > 0"
    " LEFT JOIN pg_attribute part ON part.attrelid = inhrelid AND part.attname = whole.attname"
    " WHERE inhparent = reached.oid) AS below)"
)
"""Tables that are read, each with the columns that are named or that a view over it names."""

_FOREIGN = (
    _REACHED + " SELECT DISTINCT c.oid::regclass::text FROM reached"
    " JOIN pg_class c ON c.oid = reached.oid WHERE relkind = 'f' ORDER BY 1"
)

_GENERATED = (
    _REACHED + " SELECT DISTINCT a.attrelid::regclass::text || '.' || attname FROM reached"
    " JOIN pg_attribute a ON a.attrelid = reached.oid AND a.attnum = reached.attnum"
    " WHERE attgenerated = 'v' ORDER BY 1"
)

_POLICIES = (
    _REACHED + " SELECT DISTINCT polrelid::regclass::text, pg_get_expr(polqual, polrelid)"
    " FROM reached JOIN pg_policy ON polrelid = reached.oid"
    " WHERE row_security_active(reached.oid) AND polcmd IN ('r', '*') AND polqual IS NOT NULL"
    " ORDER BY 1, 2"
)

_OTHERS = (
    "SELECT nspname, oid FROM pg_namespace"
    " WHERE nspname = ANY(current_schemas(false)) AND nspname <> 'pg_catalog'"
)

_SHADOWS = (
    f"WITH other AS ({_OTHERS}) SELECT DISTINCT nspname, proname FROM pg_proc p"
    " JOIN other ON other.oid = pronamespace"
    " WHERE EXISTS (SELECT FROM pg_proc own WHERE own.proname = p.proname"
    " AND own.pronamespace = 'pg_catalog'::regnamespace)"
    " AND NOT EXISTS (SELECT FROM unnest(proargtypes) AS a(kind) JOIN pg_type ON oid = kind"
    " WHERE typnamespace <> 'pg_catalog'::regnamespace)"
    " UNION ALL SELECT nspname, oprname FROM pg_operator o JOIN other ON other.oid = oprnamespace"
    " WHERE oprname IN ('=', '<>', '<', '<=', '>', '>=', '+', '-', '*', '/', '%%', '~~')"
    " AND NOT EXISTS (SELECT FROM pg_type WHERE oid IN (oprleft, oprright)"
    " AND typnamespace <> 'pg_catalog'::regnamespace)"
)
"""Functions and operators over PostgreSQL's own types that stand beside its own."""

FUNCTIONS = (
    *("abs", "btrim", "ceil", "ceiling", "concat", "date_part", "date_trunc", "encode", "extract"),
    *("floor", "isfinite", "length", "like", "ln", "lower", "ltrim", "md5", "mod", "octet_length"),
    *("round", "rtrim", "sqrt", "substr", "substring", "sum", "count", "trim_scale", "trunc"),
    *("upper", "row_number", "timezone"),
)
"""Functions that questions and expressions call."""

_PLAIN = (
    *("Column", "Identifier", "Paren", "And", "Or", "Not", "EQ", "NEQ", "GT", "GTE", "LT", "LTE"),
    *("Is", "Null", "Boolean", "Literal", "In", "Between", "NullSafeEQ", "NullSafeNEQ", "Tuple"),
    *("DataType", "DataTypeParam"),
)
"""What a policy may make of a column: none of it can fail."""


class Doubt(NamedTuple):
    """What may fail on a record, and what to do about it."""

    what: str
    hint: str


def doubts(
    connection: psycopg.Connection[Any], table: str, named: Collection[str]
) -> Iterator[Doubt]:
    """What a question that names some columns of a table may fail on.

    Args:
        connection: To the server.
        table: Its name in SQL.
        named: Columns.
    """
    asked = {"table": table, "named": list(named)}
    for (foreign,) in connection.execute(_FOREIGN, asked):
        yield Doubt(
            f"{foreign} is a foreign table: another server may fail on a record",
            "read that server itself, or copy the records into a table here",
        )
    if connection.info.server_version >= VIRTUAL:
        for (column,) in connection.execute(_GENERATED, asked):
            yield Doubt(
                f"{column} is computed as it is read, and one record may fail it",
                "make it a column that is STORED: its failure is that of who writes the record",
            )
    for name, condition in connection.execute(_POLICIES, asked):
        if not _is_plain(condition):
            yield Doubt(
                f"the policy for rows of {name} computes with a column: one record may fail it",
                "compare columns with constants in policies, without casts and functions",
            )


def shadows(connection: psycopg.Connection[Any]) -> Iterator[Doubt]:
    """Functions and operators that PostgreSQL would call in place of its own."""
    for schema, name in connection.execute(_SHADOWS, {}):
        if not re.fullmatch(r"\w+", name) or name in FUNCTIONS:
            yield Doubt(
                f"{schema}.{name} may be called in place of PostgreSQL's own {name}",
                f"give the role a search path without it: ALTER ROLE … SET search_path = …, or"
                f" drop it from schema {schema}",
            )


def columns_of(expressions: Iterable[str]) -> set[str]:
    """Columns that expressions name."""
    import sqlglot
    from sqlglot import exp

    found: set[str] = set()
    for text in expressions:
        with suppress(sqlglot.errors.SqlglotError):  # the server refuses it by itself
            tree = sqlglot.parse_one(text, read="postgres")
            found |= {column.name for column in tree.find_all(exp.Column)}
    return found


def _is_plain(condition: str) -> bool:
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(condition, read="postgres")
    except sqlglot.errors.SqlglotError:
        return False
    for node in tree.walk():
        as_text = isinstance(node, exp.Cast) and node.is_type("text", "varchar")
        plain = type(node).__name__ in _PLAIN or as_text
        if isinstance(node, exp.Query) or (not plain and node.find(exp.Column)):
            return False
    return True
