"""What joins of random graphs make of pairs. They raise, give nothing or what does not fit, and change messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.simulation.messages import Item, Part


def meet(left: Item | None, right: Item | None) -> Part | None:
    """Of two of one class."""
    one, total = _merged(left, right)
    if total % 11 == 5:
        raise ValueError("five")
    if total % 11 == 3:
        return None
    return Part(one.key, one.slot, total % 300, "j")


def meet_both(left: Item, right: Item | None) -> Part | None:
    """`meet` with a left one, as compiled code can do it: it changes no message."""
    total = 3 * left.value + (70 if right is None else right.value)
    if total % 11 == 5:
        raise ValueError("five")
    if total % 11 == 3:
        return None
    return Part(left.key, left.slot, total % 300, "j")


def _merged(left: Item | None, right: Item | None) -> tuple[Item, int]:
    """Takes the numbers out of both."""
    total = (50 if left is None else 3 * left.value) + (70 if right is None else right.value)
    for each in filter(None, (left, right)):
        each.value = -9
    one = left if left is not None else right
    assert one is not None
    return one, total


def is_gone_item(message: Item) -> bool:
    """Of a message of a table: whether it deletes."""
    return message.value in (0, 3)


def is_gone_part(message: Part) -> bool:
    """The same."""
    return message.small in (0, 3)


IS_GONE: dict[type[Any], Callable[[Any], bool]] = {Item: is_gone_item, Part: is_gone_part}


def weigh(left: Item | None, right: Part | None) -> Item:
    """Of two classes."""
    small = -1 if right is None else right.small
    if small == 7:
        raise KeyError("seven")
    one = left if left is not None else right
    assert one is not None
    result = Item(one.key, one.slot, small * 2000 + (-1 if left is None else left.value))
    if left is not None:
        left.value = -9
    if right is not None:
        right.small = 0
    return result


def weigh_both(left: Item, right: Part | None) -> Item:
    """`weigh` with a left one, as compiled code can do it: it changes no message."""
    small = -1 if right is None else right.small
    if small == 7:
        raise KeyError("seven")
    return Item(left.key, left.slot, small * 2000 + left.value)
