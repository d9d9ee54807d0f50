"""Store: ledger, releases, learners and outbox in one SQLite file."""
