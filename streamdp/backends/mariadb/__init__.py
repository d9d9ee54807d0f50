"""MariaDB: asked where the records are."""
