"""What joins mean: which messages are kept for partners, which are paired, and when one has none."""
