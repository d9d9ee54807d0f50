"""The order of things: the walk of a release, and what is due."""
