"""Noise on integers, and the statistics that it is added to."""
