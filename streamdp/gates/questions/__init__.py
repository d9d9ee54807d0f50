"""Tests of gates: each is its keys, what it asks of a batch, and its score."""
