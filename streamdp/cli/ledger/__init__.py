"""Commands for budget and evidence: caps, statements, verification, backup and restore."""
