"""The events of the ledger, accountants and caps, against accountants of their own."""
