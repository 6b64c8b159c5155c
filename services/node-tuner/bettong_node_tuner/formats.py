"""How the kernel writes values: lists of CPUs, masks of CPUs, choices in brackets, words between blanks.

Each format has one canonical text, so that texts are equal when values are, and each canonical text may be written.
Sources: `Documentation/core-api/irq/irq-affinity.rst`, `Documentation/admin-guide/mm/transhuge.rst`, and
`bitmap_parse()` and `bitmap_parselist()` in `lib/bitmap-str.c`.
"""

from collections.abc import Iterable
from enum import StrEnum

CPUS_MAX = 8192  # CONFIG_NR_CPUS of the largest kernels; a longer list is no list of CPUs
_CHUNK_BITS = 32


class Form(StrEnum):
    """A format of values."""

    WORDS = "words"  # one or more, between blanks: most of /proc/sys
    CHOICE = "choice"  # all choices in a line, the one that holds in brackets
    LIST = "list"  # CPUs: 0-3,8
    MASK = "mask"  # CPUs: hexadecimal in groups of 32 bits, 1,0000000f
    COUNT = "count"  # a number of things that the kernel may grant in part


def canonical(form: Form, text: str) -> str:
    """The one text of a value as read. A text that is not of its format is its own canonical text."""
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
    """The choice that holds, of `always [madvise] never`. Raises ValueError when none is in brackets."""
    for word in text.split():
        if word.startswith("[") and word.endswith("]"):
            return word[1:-1]
    raise ValueError(f"no choice in brackets: {text!r}")


def choices(text: str) -> list[str]:
    """All choices of a line, the one in brackets among them."""
    return [word.strip("[]") for word in text.split()]


def cpus_of_list(text: str) -> frozenset[int]:
    """The CPUs of `0-3,8`; of an empty text none. Raises ValueError that says what is no list."""
    found: set[int] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{text!r} is no list of CPUs; expected 0-3,8")
        low, high = int(first), int(last) if dash else int(first)
        if high < low or high >= CPUS_MAX:
            raise ValueError(f"{part!r} is no range of CPUs: first to last, below {CPUS_MAX}")
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
    """The CPUs of `1,0000000f`. Raises ValueError when the text is no mask."""
    number = 0
    for chunk in text.split(","):
        number = (number << _CHUNK_BITS) | int(chunk, 16)
    if number < 0 or number.bit_length() > CPUS_MAX:
        raise ValueError(f"{text!r} is no mask of CPUs")
    return frozenset(cpu for cpu in range(number.bit_length()) if number >> cpu & 1)


def mask_of(cpus: Iterable[int]) -> str:
    """CPUs as a mask, in groups of 32 bits, without leading zeros."""
    number = sum(1 << cpu for cpu in set(cpus))
    chunks = []
    while number >> _CHUNK_BITS:
        chunks.append(f"{number & 0xFFFFFFFF:08x}")
        number >>= _CHUNK_BITS
    return ",".join([f"{number:x}", *reversed(chunks)])
