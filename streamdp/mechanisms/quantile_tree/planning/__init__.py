"""Planning a release of quantiles from public facts: its accuracy, and which tree to draw from."""
