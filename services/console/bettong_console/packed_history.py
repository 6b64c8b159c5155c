"""The encoding of the history in Redis, step by step. Pure.

    field of a ring's hash   value
    step % values            step (8 bytes), which names (4 bytes), then 4 bytes per series: a float, NaN for none
    names:N                  JSON: the names of the series, in that order; N is its CRC

So a ring of SPANS has as many fields as steps, and NAMES_MAX more. Readers skip invalid fields: others may write there.
"""

from __future__ import annotations

import json
import zlib
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from struct import Struct

from bettong.edges.redis_store import RingChange
from bettong_console.history import SERIES_MAX, SPANS, History, Span

_HEAD = Struct("<qI")
# Most lists of series names in a ring; each new series adds one, and beyond this the oldest is removed.
NAMES_MAX = 8
# Most steps of a write: those of an inspection, and those of the time in which a dead console's lease lasted.
_STEPS_MAX = 48
_NAME_BYTES_MAX = 64 * SERIES_MAX


class PackedHistory:
    """The part of a history that is not written yet."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._written: dict[str, int] = {}
        self._names: dict[str, deque[str]] = {name: deque() for name in SPANS}

    def changes(self) -> dict[str, RingChange]:
        """The steps of each span since `note_written`, and the newest one then, which may have changed."""
        return {name: change for name, span in SPANS.items() if (change := self._change(span)) is not None}

    def note_written(self) -> None:
        """Notes that the last `changes` are written."""
        for name, span in SPANS.items():
            for step, _ in self._history.steps(span, -1, 1):
                self._written[name] = step

    def restore(self, span: Span, now_s: float, fields: Mapping[bytes, bytes]) -> None:
        """Takes over the fields that an earlier console wrote."""
        self._names[span.name].extend(
            name.decode(errors="replace") for name in fields if name.startswith(b"names:")
        )
        self._history.restore(span, now_s, unpacked(fields))

    def _change(self, span: Span) -> RingChange | None:
        steps = list(self._history.steps(span, self._written.get(span.name, 0) - 1, _STEPS_MAX))
        if not steps:
            return None
        names = list(steps[-1][1])
        text = json.dumps(names).encode()
        crc = zlib.crc32(text)
        fields = {f"names:{crc}": text}
        for step, values in steps:
            fields[str(step % span.values)] = _HEAD.pack(step, crc) + array("f", values.values()).tobytes()
        known, gone = self._names[span.name], []
        if f"names:{crc}" not in known:
            known.append(f"names:{crc}")
        while len(known) > NAMES_MAX:
            gone.append(known.popleft())
        return RingChange(fields, gone)


def unpacked(fields: Mapping[bytes, bytes]) -> dict[int, dict[str, float]]:
    """The values of the series by step; invalid fields are skipped."""
    names = {key: _names(text) for key, text in fields.items() if key.startswith(b"names:")}
    found: dict[int, dict[str, float]] = {}
    for key, value in fields.items():
        if key.startswith(b"names:") or len(value) < _HEAD.size:
            continue
        step, crc = _HEAD.unpack_from(value)
        own = names.get(b"names:%d" % crc, ())
        if len(value) == _HEAD.size + 4 * len(own):
            found[step] = dict(zip(own, array("f", value[_HEAD.size :]), strict=True))
    return found


def _names(text: bytes) -> Sequence[str]:
    if len(text) > _NAME_BYTES_MAX:
        return ()
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return names if is_list and len(names) <= SERIES_MAX else ()
