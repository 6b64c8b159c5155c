"""Texts from outside for a terminal: messages, keys, reasons and names could hold escape sequences. Pure."""

from __future__ import annotations


def printable(text: str) -> str:
    """One line without control characters, or those that change the direction of what follows."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else " " if each.isspace() else "\N{REPLACEMENT CHARACTER}"
        for each in text
    )


def printable_lines(text: str) -> str:
    """The same, with its lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def escaped(text: str) -> str:
    """One line for a text with rich's markup, which it does not change."""
    from rich.markup import escape

    return escape(printable(text))
