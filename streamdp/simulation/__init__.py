"""Releases replayed where the truth is known; the only place that knows it."""
