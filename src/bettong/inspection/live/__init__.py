"""Reads what runs and what it has stored: the part of inspection with input and output."""
