"""How often intervals of every kind but quantiles hold, and how wide they are."""
