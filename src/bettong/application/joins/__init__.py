"""Joins, as an application describes them: which messages of two streams belong together, and what is kept for it."""
