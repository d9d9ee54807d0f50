"""Where the records are: each engine answers one question, the cell counts of a batch.

In `sql` is what engines do alike: `cells` is the rule that puts a value in its cell, `question` the
SQL that all of them share. A new engine is a folder: a `SqlDialect` that says in what it differs, a
backend that opens, describes and runs, and a section of the configuration; and one row in the
contract suite, `tests/contract`, which holds it to the same counts to the last bit; see
`deploy/docs/how-to/engine.md`.

Why there is no relational layer for engines beyond these: ibis, measured on DuckDB by
`tests.benchmarks.engines`, took 1.7 times as long as native SQL, five times DuckDB's time to
import, and 280 MB on disk. What it would spare are the dialects, about a hundred lines an engine.
What it cannot give is the promise that counts are the same, since that hangs on how each engine
rounds, overflows and casts, and can be held only where the engine runs in the suite.
"""
