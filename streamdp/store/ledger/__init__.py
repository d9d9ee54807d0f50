"""The ledger: charges, the room under every cap, and the data a budget belongs to."""
