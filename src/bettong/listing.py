"""Lists of names and of texts for people."""

from collections.abc import Sequence


def first_named(names: Sequence[object], most: int) -> str:
    """The first `most` names, and how many more there are: "a, b and 3 more"."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def first_texts(texts: Sequence[str], most: int) -> str:
    """The first `most` texts, and how many more there are: "a is late; b is late; and 3 more"."""
    more = f"; and {len(texts) - most:,} more" if len(texts) > most else ""
    return "; ".join(texts[:most]) + more
