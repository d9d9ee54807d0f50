"""Log: a closed list of events that hold public facts only."""
