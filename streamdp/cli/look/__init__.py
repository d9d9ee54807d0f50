"""Commands that show what was published and the state of the daemon."""
