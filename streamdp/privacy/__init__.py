"""How much does it cost, and how is chance drawn exactly."""
