"""Where the true quantiles of a batch lie, given what was released."""
