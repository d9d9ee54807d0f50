"""Tests of gates, as the configuration writes them."""
