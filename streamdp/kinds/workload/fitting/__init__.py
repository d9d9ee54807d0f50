"""Distributions fitted to released counts. No record is seen."""
