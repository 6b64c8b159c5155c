"""What a harness is: one parser, fed any bytes.

The property is always the same. A parser gives a value, or raises its own error, in bounded time and memory: never
another exception, never a crash. `read` returns for both; whatever it raises is a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"

# Frames have 4 MiB at most, but what breaks a parser is small, and small inputs are many.
INPUT_BYTES_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class Harness:
    """`read(data)` feeds the parser; `seeds()` are valid samples; `words` are put into inputs as they are.

    `name` is also that of the corpus's folder.
    """

    name: str
    read: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    words: tuple[bytes, ...] = ()

    def corpus(self) -> list[bytes]:
        """The inputs that the tree keeps: seeds, and whatever once was a finding."""
        return [path.read_bytes() for path in sorted((CORPUS / self.name).glob("*.bin"))]
