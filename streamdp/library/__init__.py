"""What `import streamdp` offers in a notebook: stores to read, and releases a ledger pays for."""
