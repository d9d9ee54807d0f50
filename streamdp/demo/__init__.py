"""The flights shipped with the package and the configuration that releases them."""
