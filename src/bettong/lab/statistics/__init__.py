"""What measurements say: differences, slopes, the highest rate, what was hoped for. Pure."""
