"""Objects of a storage: what an address names, which objects there are, and copies of them."""
