"""Questions of gates: each turns a batch into a test."""
