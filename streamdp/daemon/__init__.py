"""When: schedule, signals, and the lock that keeps a second daemon out."""
