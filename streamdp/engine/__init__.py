"""In what order: the walk of a release, and what is due."""
