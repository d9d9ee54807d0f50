"""Reports for people: status, budget and statement, read from store and configuration."""
