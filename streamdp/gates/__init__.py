"""When is it published: private tests of a batch, and how a run of them answers."""
