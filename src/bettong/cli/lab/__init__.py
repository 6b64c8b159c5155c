"""`bettong lab`: reliable measurements."""
