"""Quantile trees: their law, computed from the production code and compared over neighbours."""
