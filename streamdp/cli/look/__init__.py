"""Commands that show what was published and how the daemon fares."""
