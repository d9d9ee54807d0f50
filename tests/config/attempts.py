"""Attempts to make an expression look past its record: at others, clocks, chance and files."""

from __future__ import annotations

WORDS = ("now", "today", "tomorrow", "yesterday")

CLOCKS = (
    *(
        f"at < '{word}'"
        for word in (*WORDS, "NOW", "Today", " now ", "now()", "(now)", "now.", "-now")
    ),
    *(f"CAST('{word}' AS TIMESTAMP) < at" for word in WORDS),
    *(f"CAST('{word}' AS DATE) < d" for word in WORDS),
    *(f"{kind} '{word}' < at" for word in WORDS for kind in ("TIMESTAMP", "DATE", "TIMESTAMPTZ")),
    *(
        "at < '12:30 today'",
        "at < 'today 12:30'",
        "at < 'tomorrow 04:05 UTC'",
        "at BETWEEN 'yesterday' AND 'now'",
    ),
    *("coalesce(at, 'now') > d", "CASE WHEN x > 1 THEN at ELSE 'now' END > d", "at IN ('now')"),
    *("greatest(at, 'now') = at", "nullif(at, 'today') IS NULL", "at IS NOT DISTINCT FROM 'now'"),
    *("year('now') = 2024", "extract(day FROM 'today') = 1", "date_trunc('day', 'now') = at"),
    *(
        "TRY_CAST('now' AS DATE) = d",
        "'now'::TIMESTAMP < at",
        "'now'::DATE = d",
        "d = lower('TODAY')",
    ),
    *(
        "at < substring('xnow', 2, 3)",
        "at < trim('xnowx', 'x')",
        "at < trim(BOTH 'x' FROM 'xtodayx')",
    ),
    *("CAST(substring('xnow', 2, 3) AS DATE) = d", "CAST(trim('ztodayz', 'z') AS DATE) = d"),
    *("CAST(upper('now') AS TIMESTAMP) < at", "CAST(coalesce('now', t) AS TIMESTAMP) < at"),
    *(
        "now() > at",
        "current_date > d",
        "current_timestamp > at",
        "current_time IS NULL",
        "localtime IS NULL",
    ),
    *("localtimestamp > at", "transaction_timestamp() > at", "statement_timestamp() > at"),
    *("clock_timestamp() > at", "timeofday() = t", "getdate() > at", "today() > d", "age(at) > 1"),
    *("get_current_timestamp() > at", "unix_timestamp() > x", "curdate() = d"),
    *("date_diff('day', d, current_date) > 1", "at > now() - INTERVAL 1 DAY", "epoch(now()) > x"),
)
"""The present, under all its names and spellings."""

OTHERS = (
    *(
        "row_number() OVER (ORDER BY x) > 1",
        "sum(x) OVER ()",
        "x > avg(x)",
        "count(*)",
        "min(x) < 3",
    ),
    *("count(*) FILTER (WHERE x > 1)", "any_value(x)", "first(x)", "last(x)", "lag(x)", "lead(x)"),
    *(
        "rank() OVER ()",
        "ntile(4) OVER ()",
        "lag(x) OVER (ORDER BY at)",
        "median(x) > 1",
        "mode(x) = 1",
    ),
    *(
        "quantile_cont(x, 0.5)",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
        "string_agg(t, ',')",
    ),
    *(
        "array_agg(x)",
        "list(x)",
        "bool_or(x > 1)",
        "stddev(x) > 1",
        "corr(x, x) > 0",
        "approx_quantile(x, 0.5)",
    ),
    *(
        "x IN (SELECT y FROM other)",
        "x = (SELECT max(y) FROM other)",
        "EXISTS (SELECT 1 FROM other)",
    ),
    *("x = ANY (SELECT 1)", "x > ALL (SELECT y FROM other)", "(SELECT 1) = x", "x = (TABLE other)"),
    *(
        "other.x > 1",
        "main.rides.x > 1",
        "x FROM other",
        "SELECT 1",
        "x UNION SELECT 1",
        "WITH q AS (SELECT 1) SELECT 1",
    ),
    *(
        "unnest([1, 2])",
        "generate_series(1, 3)",
        "range(3)",
        "explode(array(1))",
        "x[1]",
        "[x, x]",
        "{'a': x}",
    ),
    *(
        "rowid < 5",
        "ctid",
        "xmin",
        "tableoid",
        "file_row_number",
        "filename = 'a'",
        "_metadata",
        "file_index > 1",
    ),
    *(
        "monotonically_increasing_id()",
        "input_file_name()",
        "spark_partition_id()",
        "lateral_column > (VALUES (1))",
    ),
)
"""Other records, and where a record lies among them."""

CHANCE = (
    *(
        "random() < 0.5",
        "rand() < 0.5",
        "randn() < 0.5",
        "uuid()",
        "gen_random_uuid()",
        "setseed(0.5)",
        "x < random()",
    ),
    *(
        "shuffle(array(1))",
        "hash(random())",
        "nextval('counter')",
        "currval('counter')",
        "lastval()",
        "txid_current()",
    ),
)
"""What would not be the same the next time."""

PLACES = (
    *("read_csv('other.csv')", "read_text('/etc/passwd')", "getenv('HOME')", "getvariable('x')"),
    *(
        "pg_read_file('x')",
        "pg_sleep(1)",
        "lo_import('x')",
        "dblink('x', 'y')",
        "current_setting('x')",
    ),
    *(
        "set_config('a', 'b', false)",
        "query('SELECT 1')",
        "query_table('other')",
        "java_method('a', 'b')",
    ),
    *(
        "reflect('a', 'b')",
        "current_user = t",
        "session_user = t",
        "version() = t",
        "pg_backend_pid() > 1",
    ),
    *(
        "inet_client_addr() IS NULL",
        "current_database() = t",
        "current_schema() = t",
        "pg_typeof(x) = t",
    ),
    *(
        "COLUMNS('.*')",
        "*",
        "* EXCLUDE (x)",
        "$1",
        "?",
        ":name",
        "x; DROP TABLE y",
        "DROP TABLE x",
    ),
    *(
        "x /* */ ; SELECT 1",
        "x ~ '(a+)+$'",
        "regexp_matches(t, '(a+)+$')",
        "t SIMILAR TO '%(a|b)*'",
    ),
    *(
        "CAST(x AS STRUCT(y INT))",
        "CAST(t AS JSON)",
        "CAST(t AS REGCLASS)",
        "CAST(t AS INT[])",
        "t COLLATE NOCASE = 'a'",
    ),
    *(
        "error('x')",
        "repeat(t, 1000000000)",
        "lpad(t, 1000000000, 'x')",
        "x -> y",
        "list_transform([x], y -> y)",
    ),
    *("", "x AND", "(" * 900 + "x" + ")" * 900, "x " * 1500, "x = 'unterminated"),
)
"""Files, settings, servers, other tongues, and what is no expression."""

SPARK = (
    *(
        "at < '12:30'",
        "at < 'T12:30:15'",
        "at < 'T12'",
        "CAST(t AS TIMESTAMP) < at",
        "CAST('12:30' AS TIMESTAMP) < at",
    ),
    *("CAST(t AS TIMESTAMPTZ) < at", "TIMESTAMP '12:30' < at"),
)
"""Times of day, which Spark completes by the day on which it reads them."""

ATTEMPTS = (*CLOCKS, *OTHERS, *CHANCE, *PLACES)

ADMITTED = (
    *(
        "x + 1",
        "x / 2",
        "x % 3",
        "-x",
        "abs(x)",
        "round(x)",
        "floor(x / 2)",
        "ceil(x)",
        "ln(x)",
        "sqrt(x)",
    ),
    *(
        "greatest(x, 2)",
        "least(x, 2)",
        "coalesce(x, 0)",
        "nullif(x, 2)",
        "CASE WHEN x > 2 THEN x ELSE 0 END",
    ),
    *(
        "x > 1 AND t = 'a'",
        "NOT x > 1",
        "x IS NULL",
        "x BETWEEN 1 AND 3",
        "t IN ('a', 'b')",
        "t LIKE 'a%'",
    ),
    *(
        "lower(t) = 'a'",
        "upper(t) = 'A'",
        "length(t) > 1",
        "substring(t, 1, 1) = 'a'",
        "trim(t) = 'a'",
    ),
    *(
        "at < '2024-01-02'",
        "d = DATE '2024-01-01'",
        "at >= TIMESTAMP '2024-01-01 05:00:00'",
        "year(d) = 2024",
    ),
    *(
        "extract(hour FROM at) < 7",
        "date_trunc('day', at) = at",
        "t = 'Noway'",
        "t <> 'knowing'",
        "x IS NOT DISTINCT FROM 2",
    ),
    *("at < 'infinity'", "t = 'epoch'"),
)
"""Functions of one record."""
