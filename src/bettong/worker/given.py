"""What a computation gave, as it was when it gave it.

A function may give an object again after changing it: its key's state, or the one object that its generator fills
anew for each result. Results are read when the whole frame is through, so such an object is copied where it is given.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Any

# Named once: a union made at each call would cost as much as the rest.
_FINISHED = (list, tuple)


def several(result: Iterable[Any], state: Any) -> list[Any]:
    """The results that a stateful function gave for one message; a generator may change the state between two."""
    if isinstance(result, _FINISHED):
        return [copy(each) if each is state else each for each in result]
    return [copy(each) for each in result]


def flat(function: Callable[[Any], Iterable[Any]], message: Any) -> Sequence[Any]:
    """The results of a function without state for one message.

    Copies cost more than most functions do. So only where an object was given twice, in which case it is too late,
    the function is called once more.
    """
    result = function(message)
    if isinstance(result, _FINISHED):
        return result
    found = list(result)
    if len(found) < 2 or len(set(map(id, found))) == len(found):
        return found
    return [copy(each) for each in function(message)]
