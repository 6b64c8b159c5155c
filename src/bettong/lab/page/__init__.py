"""Runs as an HTML page, and its plots."""
