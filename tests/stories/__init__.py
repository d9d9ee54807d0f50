"""Walks through the package as an analyst would, measured against the truth."""
