"""The bounds of each container's values in the one array of the values of all rows."""

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence, Sized
from itertools import accumulate
from typing import Any

import pyarrow as pa

from bettong.schema.form import UnfitValueError, shown

# The greatest of Arrow's offsets; a frame is far smaller.
_VALUES_MAX = 2**31 - 1


class Spans:
    """The bounds of containers of the given sizes, in order."""

    def __init__(self, containers: Sequence[Sized]) -> None:
        self._bounds = [0, *accumulate(map(len, containers))]
        if self._bounds[-1] > _VALUES_MAX:
            raise UnfitValueError(f"{self._bounds[-1]} values in a frame, at most {_VALUES_MAX}")

    @classmethod
    def of_offsets(cls, offsets: Sequence[int]) -> "Spans":
        """The bounds of containers at these offsets."""
        spans = cls(())
        spans._bounds = [offset - offsets[0] for offset in offsets]
        return spans

    @property
    def offsets(self) -> pa.Array:
        """The bounds as Arrow's offsets."""
        return pa.array(self._bounds, pa.int32())

    def locate(self, error: UnfitValueError, step: Callable[[int, int], str]) -> None:
        """Sets an error's row to its container's. `step`: a step of its path, by its index among all and its own."""
        if error.row is not None:
            flat = error.row
            error.row = bisect_right(self._bounds, flat) - 1
            error.path = step(flat, flat - self._bounds[error.row]) + error.path


def offsets_of(array: pa.Array) -> list[int]:
    """The offsets of a list or map array that was validated; at least one."""
    return list(array.offsets.to_numpy().tolist()) if len(array) else [0]


def json_document(text: str) -> Any:
    """The JSON value in a cell. Raises UnfitValueError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnfitValueError(f"{shown(text)} is no JSON: {error}") from None
