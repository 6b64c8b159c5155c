"""What a computation's function returns for a message."""

from enum import Enum


class Returns(Enum):
    """NOTHING: one of several functions of a stateful computation returns none. WHETHER: a predicate."""

    NOTHING = "nothing"
    ONE = "a result, or None"
    WHETHER = "whether to keep the row"
    MANY = "an iterable of results"
