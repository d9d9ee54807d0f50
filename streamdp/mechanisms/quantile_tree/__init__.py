"""Quantiles of a batch: the quantile tree and its draws; `planning` has what is known before."""
