"""Reference tables in the fold: what `load()` returned, a version as columns, and the version that a partition sees."""
