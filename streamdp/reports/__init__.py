"""Reports for people: state, budget and statement, read from store and configuration."""
