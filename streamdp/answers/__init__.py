"""Answers from measurements that were paid for: quantiles, shares, totals, changes."""
