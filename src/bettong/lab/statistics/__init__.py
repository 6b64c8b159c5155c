"""What measurements show: differences, slopes, the highest sustained rate, missed objectives. Pure."""
