"""Quantiles of a batch: the quantile tree, its draws, their calibration and their accuracy."""
