"""Where the records are: each engine answers one question, the cell counts of a batch."""
