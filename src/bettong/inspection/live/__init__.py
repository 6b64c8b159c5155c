"""Reads services and what they have stored: the part of inspection with input and output."""
