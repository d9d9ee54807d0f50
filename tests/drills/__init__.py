"""Drills: a loss, the way back that the documentation names, and what was charged for it."""
