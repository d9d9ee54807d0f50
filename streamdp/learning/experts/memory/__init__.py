"""Memory of the experts between releases, and how a release changes it."""
