"""A read-only page over the store: HTML, an API, metrics; it cannot write, and sees no secrets."""
