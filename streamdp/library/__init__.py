"""The notebook interface: stores to read, and releases that a ledger pays for."""
