"""Commands that release: on schedule, once, or for a stretch of time."""
