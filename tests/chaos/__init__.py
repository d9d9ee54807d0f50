"""Faults of everything around a daemon, provoked while it works."""
