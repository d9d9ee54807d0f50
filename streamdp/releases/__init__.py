"""What is published: one file a release kind, each four pure functions."""
