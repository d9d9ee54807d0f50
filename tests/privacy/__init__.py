"""The law of the production code, computed and compared over neighbours."""
