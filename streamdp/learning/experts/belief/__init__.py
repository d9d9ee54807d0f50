"""Beliefs about the quantiles of one batch, and the noise that they are seen through."""
