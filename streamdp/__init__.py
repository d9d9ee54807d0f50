"""Differentially private quantiles of every new batch, on a schedule, learning as it goes."""

__version__ = "0.1.0"
