"""Priors by online gradient descent on the censored-regression surrogate."""
