"""Release kind `quantiles`: sorted private quantiles of one column of a batch."""
