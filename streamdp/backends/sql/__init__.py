"""The SQL that all engines share: questions, scans, bounds of units, and the dialects' protocol."""
