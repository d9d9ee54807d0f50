"""Measures of a release: counts and moments of a batch, clipped, filtered over time."""
