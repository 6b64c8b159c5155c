"""How the kernel writes values: lists of CPUs, masks of CPUs, choices in brackets, words separated by blanks.

Each value has one canonical text, so that texts are equal when values are, and each canonical text may be written.
Sources: `Documentation/core-api/irq/irq-affinity.rst`, `Documentation/admin-guide/mm/transhuge.rst`, and
`bitmap_parse()` and `bitmap_parselist()` in `lib/bitmap-str.c`.
"""

from collections.abc import Iterable
from enum import StrEnum

CPUS_MAX = 8192  # CONFIG_NR_CPUS of the largest kernels
_CHUNK_BITS = 32


class Form(StrEnum):
    """A format of values."""

    WORDS = "words"  # one or more, separated by blanks: most of /proc/sys
    CHOICE = "choice"  # all choices in a line, the current one in brackets
    LIST = "list"  # CPUs: 0-3,8
    MASK = "mask"  # CPUs: hexadecimal in groups of 32 bits, 1,0000000f
    COUNT = "count"  # a number of things that the kernel may grant in part


def canonical(form: Form, text: str) -> str:
    """The canonical text of a value as read. A text that is not of its format is returned as it is."""
    text = " ".join(text.split())
    try:
        if form is Form.CHOICE:
            return chosen(text)
        if form is Form.LIST:
            return list_of(cpus_of_list(text))
        if form is Form.MASK:
            return mask_of(cpus_of_mask(text))
    except ValueError:
        return text
    return text


def chosen(text: str) -> str:
    """The current choice, of `always [madvise] never`. Raises ValueError when none is in brackets."""
    for word in text.split():
        if word.startswith("[") and word.endswith("]"):
            return word[1:-1]
    raise ValueError(f"no choice in brackets: {text!r}")


def choices(text: str) -> list[str]:
    """All choices of a line, including the one in brackets."""
    return [word.strip("[]") for word in text.split()]


def cpus_of_list(text: str) -> frozenset[int]:
    """The CPUs of `0-3,8`; none of an empty text. Raises ValueError that quotes the faulty part."""
    found: set[int] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{text!r} is not a list of CPUs; expected 0-3,8")
        low, high = int(first), int(last) if dash else int(first)
        if high < low or high >= CPUS_MAX:
            raise ValueError(f"{part!r} is not a range of CPUs: expected first-last, below {CPUS_MAX}")
        found.update(range(low, high + 1))
    return frozenset(found)


def list_of(cpus: Iterable[int]) -> str:
    """CPUs as the kernel lists them: 0-3,8."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def cpus_of_mask(text: str) -> frozenset[int]:
    """The CPUs of `1,0000000f`. Raises ValueError when the text is not a mask."""
    number = 0
    for chunk in text.split(","):
        number = (number << _CHUNK_BITS) | int(chunk, 16)
    if number < 0 or number.bit_length() > CPUS_MAX:
        raise ValueError(f"{text!r} is not a mask of CPUs")
    return frozenset(cpu for cpu in range(number.bit_length()) if number >> cpu & 1)


def mask_of(cpus: Iterable[int]) -> str:
    """CPUs as a mask, in groups of 32 bits, without leading zeros."""
    number = sum(1 << cpu for cpu in set(cpus))
    chunks = []
    while number >> _CHUNK_BITS:
        chunks.append(f"{number & 0xFFFFFFFF:08x}")
        number >>= _CHUNK_BITS
    return ",".join([f"{number:x}", *reversed(chunks)])
