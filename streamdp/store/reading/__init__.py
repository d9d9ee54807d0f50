"""Read-only: pages of releases and ledger, reports, and the conditions that alerts tell of."""
