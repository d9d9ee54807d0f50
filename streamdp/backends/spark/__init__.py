"""Spark: for records that outgrow one machine."""
