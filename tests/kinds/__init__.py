"""Tests of release kinds."""
