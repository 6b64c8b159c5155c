"""Texts from outside for a terminal: messages, keys, reasons and names could hold escape sequences. Pure."""

from __future__ import annotations

# Of words in Persian and in languages of India, and of emoji: they join letters, and change nothing else.
_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"


def printable(text: str) -> str:
    """One line without control characters, or those that change the direction of what follows."""
    if text.isprintable():
        return text
    return "".join(
        each
        if each.isprintable() or each in _JOINERS
        else " "
        if each.isspace()
        else "\N{REPLACEMENT CHARACTER}"
        for each in text
    )


def printable_lines(text: str) -> str:
    """The same, with its lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def escaped(text: str) -> str:
    """One line for a text with rich's markup, which it does not change."""
    from rich.markup import escape

    return escape(printable(text))
