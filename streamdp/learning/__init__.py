"""Learners: priors and plans from past releases alone, never from data."""
