"""What joins of random graphs make of pairs: they raise, give nothing, or what does not fit."""

from __future__ import annotations

from tests.simulation.messages import Item, Part


def meet(left: Item | None, right: Item | None) -> Part | None:
    """Of two of one class."""
    total = (50 if left is None else 3 * left.value) + (70 if right is None else right.value)
    if total % 11 == 5:
        raise ValueError("five")
    one = left if left is not None else right
    if one is None or total % 11 == 3:
        return None
    return Part(one.key, one.slot, total % 300, "j")


def weigh(left: Item | None, right: Part | None) -> Item:
    """Of two classes."""
    small = -1 if right is None else right.small
    if small == 7:
        raise KeyError("seven")
    one = left if left is not None else right
    assert one is not None
    return Item(one.key, one.slot, small * 2000 + (-1 if left is None else left.value))
