"""Answers from measurements that were paid for: quantiles, shares, totals, changes."""

LEVEL = 1.959964
"""Standard deviations of a 95 % interval."""
