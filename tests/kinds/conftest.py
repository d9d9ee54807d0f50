"""The package of another project is not collected: that would put it on the path of all tests."""

collect_ignore = ["third_party"]
