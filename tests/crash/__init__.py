"""Proofs by sweep that the ledger cannot be overspent and no release is lost."""
