"""Joins, as an application describes them: which messages of two streams are paired, and what is kept for that."""
