"""The anchor: an append-only file on another volume that knows every charge before the ledger."""
