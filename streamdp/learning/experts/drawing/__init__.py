"""Draws of a batch: which quantiles, from which priors, and how they are read."""
