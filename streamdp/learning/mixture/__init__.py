"""The default learner: a belief about the distribution of a batch, learned from past releases."""
