"""Priors: measures on the line that are fixed before the data is touched."""
