"""What the interpreter says of one message, or of what fired."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class StoppedError(Exception):
    """A message that a computation with on_error="stop" cannot process, by its index; -1: a timer that fired."""

    def __init__(self, computation: str) -> None:
        self.computation = computation
        self.index = -1


@dataclass
class MessageOutcome:
    """What one message led to: (output, message or its bytes), and (computation, reason).

    Of a timer, `index` counts those that fired in the computation, and `text` stands in dead letters. `at_ns`: event
    time; `watermark_ns`: what is older is late.
    """

    at_ns: int = 0
    watermark_ns: int = 0
    index: int = 0
    text: str = ""

    results: list[tuple[str, Any]] = field(default_factory=list)
    dead_letters: list[tuple[str, str]] = field(default_factory=list)
