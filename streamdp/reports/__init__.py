"""What is shown to people: status, budget and statement, read from store and configuration."""
