"""The semantics of joins: which messages are kept for partners, which are paired, and when one has none."""
