"""Messages whose first fields are the parts of a key: in compiled code, too, their `key` is a tuple of these."""

# The attribute of their class that says how many parts there are: no name of a user's.
KEY_PARTS = "__bettong_key_parts__"
