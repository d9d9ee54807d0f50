"""Figures that anyone can measure again: ``python -m tests.benchmarks.NAME [--json] [--quick]``."""
