"""Releases of a job: their series, reports of a period, and the public data sheet."""
