"""DuckDB, the embedded default: files, tables and records in memory."""
