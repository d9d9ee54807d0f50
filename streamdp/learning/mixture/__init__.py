"""The default learner: a Bayesian mixture of predictive distributions of a batch."""
