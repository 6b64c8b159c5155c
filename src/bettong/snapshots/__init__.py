"""Snapshots: their bytes, where they are kept, and which one a partition goes on from."""
