"""Reference tables in the fold: a version as columns, what it was loaded from, and at which one a partition is."""
