"""Where releases go: each sink takes a release once, however often it is handed over."""
