"""Messages whose first fields are the parts of a key: in compiled code, too, their `key` is a tuple of these."""

# The attribute of their class with the number of parts. No user's class has such a name.
KEY_PARTS = "__bettong_key_parts__"
