"""What a computation's function returns for a message."""

from enum import Enum


class Returns(Enum):
    """NOTHING: of a stateful one whose other functions return messages. WHETHER: to keep the message."""

    NOTHING = "nothing"
    ONE = "a result, or None"
    WHETHER = "whether to keep the row"
    MANY = "an iterable of results"
