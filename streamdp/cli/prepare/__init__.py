"""Commands before the first release: write, check, foretell and simulate a configuration."""
