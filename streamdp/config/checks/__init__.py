"""Checks between sections."""
