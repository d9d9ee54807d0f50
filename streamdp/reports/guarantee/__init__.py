"""Promises and their cost: budget, prices, statement, and whether the store was altered."""
