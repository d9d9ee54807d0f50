"""The schema of a store: its migrations, its version, and the views for people who open it."""
