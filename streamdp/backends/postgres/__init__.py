"""PostgreSQL: asked where the records are."""
