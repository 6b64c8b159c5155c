"""The approximate number of different values of a window, in memory that does not grow with them."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar

import msgpack  # type: ignore[import-untyped]
import numpy as np

from bettong.application.windows.aggregates import OfValue

# A register holds the rank of the rarest hash assigned to it: 2 ** 12 of them have an error of 1.04 / 2 ** 6. The
# library takes the error, and derives the number of registers.
REGISTER_BITS = 12
REGISTERS = 1 << REGISTER_BITS
_STANDARD_ERROR = 0.0163
_HASH_BYTES = 8
HASH_BITS = 8 * _HASH_BYTES
_RANK_MAX = HASH_BITS - REGISTER_BITS + 1
# Up to so many registers are kept one by one: more would take as much memory as all of them.
SPARSE_MAX = 64


@dataclass(frozen=True, slots=True)
class ApproxDistinct(OfValue):
    """The approximate number of different values, by HyperLogLog: in 4 KiB however many there are.

    The standard error is 1.6 %: of a hundred windows, 68 have a smaller error, 95 less than 3.3 %. Values are text,
    bytes, numbers, or tuples of these. As in Python, 1, 1.0 and True are equal. Flajolet et al. 2007, with the
    corrections of Heule et al. 2013.
    """

    is_of_none: ClassVar[bool] = True
    adds_in_place: ClassVar[bool] = True
    of_kinds: ClassVar[tuple[str, ...]] = ("text", "bytes", "int", "float", "bool")
    result_kinds: ClassVar[tuple[str, ...]] = ("int", "float")

    def value(self, value: Any) -> tuple[int, int]:
        """See Aggregate: the register, and the least that it holds."""
        digest = blake2b(msgpack.packb(_plain(value)), digest_size=_HASH_BYTES).digest()
        number = int.from_bytes(digest, "little")
        return number % REGISTERS, _RANK_MAX - (number >> REGISTER_BITS).bit_length()

    def first(self, value: tuple[int, int]) -> dict[int, int] | bytearray:
        """See Aggregate. The registers that are not zero; when there are many, all of them."""
        register, rank = value
        return {register: rank}

    def add(
        self, accumulator: dict[int, int] | bytearray, value: tuple[int, int]
    ) -> dict[int, int] | bytearray:
        """See Aggregate."""
        register, rank = value
        if isinstance(accumulator, dict):
            accumulator[register] = max(rank, accumulator.get(register, 0))
            return accumulator if len(accumulator) <= SPARSE_MAX else bytearray(_registers(accumulator))
        accumulator[register] = max(rank, accumulator[register])
        return accumulator

    def join(
        self, left: dict[int, int] | bytearray, right: dict[int, int] | bytearray
    ) -> dict[int, int] | bytearray:
        """See Aggregate."""
        if isinstance(left, dict) and isinstance(right, dict):
            joined = left | {each: max(rank, left.get(each, 0)) for each, rank in right.items()}
            if len(joined) <= SPARSE_MAX:
                return joined
        return bytearray(np.maximum(_registers(left), _registers(right)))

    def result(self, accumulator: dict[int, int] | bytearray | None) -> int:
        """See Aggregate."""
        if accumulator is None:
            return 0
        # Imported late: its tables take time to load, and only processes that make results need them.
        from hyperloglog import HyperLogLog

        sketch = HyperLogLog(_STANDARD_ERROR)
        sketch.M = _registers(accumulator).astype(sketch.M.dtype)
        found: int = round(sketch.card())
        return found


def _registers(accumulator: dict[int, int] | bytearray) -> np.ndarray[Any, np.dtype[np.uint8]]:
    if isinstance(accumulator, bytearray):
        return np.frombuffer(accumulator, np.uint8)
    found = np.zeros(REGISTERS, np.uint8)
    found[list(accumulator)] = list(accumulator.values())
    return found


def _plain(value: Any) -> Any:
    """The value whose bytes are hashed: equal ones have equal bytes. Raises TypeError for other types."""
    if isinstance(value, float) and value.is_integer() and -(2**63) <= value < 2**64:
        return int(value)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if not isinstance(value, str | bytes | int | float):
        raise TypeError(
            f"ApproxDistinct of {value!r:.60}, expected text, bytes, a number, or a tuple of these; give a function"
            " that returns one"
        )
    return value
