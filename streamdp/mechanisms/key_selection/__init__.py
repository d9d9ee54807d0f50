"""How are keys found in the data without one unit deciding it."""
