"""How a release of a workload is drawn: its rounds, choices, tests and measurements."""
