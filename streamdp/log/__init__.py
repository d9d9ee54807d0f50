"""Log: a closed list of events that hold public facts only."""

from streamdp.log.setup import configure

__all__ = ["configure"]
