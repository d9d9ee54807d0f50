"""The version of streamdp, for all rooms: the package itself imports the notebook interface."""

__version__ = "0.1.0"
