"""Looks at what runs and at what it has stored: the part of inspection with input and output."""
