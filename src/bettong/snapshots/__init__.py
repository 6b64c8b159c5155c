"""Snapshots: their bytes, their stores, and the choice of the one from which a partition resumes."""
