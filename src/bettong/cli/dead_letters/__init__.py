"""`bettong dead-letters`: the messages that could not be processed."""
