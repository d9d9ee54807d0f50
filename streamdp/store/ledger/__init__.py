"""The ledger: what was charged, what every cap has room for, and which data a budget belongs to."""
