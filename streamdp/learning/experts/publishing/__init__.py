"""Values and intervals of all quantiles, from those that were drawn."""
