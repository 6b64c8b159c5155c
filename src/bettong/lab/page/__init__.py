"""Runs as a page of HTML, and the plots on it."""
