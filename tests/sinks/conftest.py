"""Packages that offer sinks hold no tests."""

collect_ignore = ["third_party"]
