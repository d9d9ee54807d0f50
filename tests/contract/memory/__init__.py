"""Records in memory: the reference that every engine must agree with."""
