"""The expected results of a load, and whether they can be computed."""
