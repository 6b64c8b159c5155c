"""The journal of partitioned files: the position of each partition, and what to undo after a crash. Pure.

    crc32c:9ae1c0de
    {"version":1,"application":"market","sink":"bids","positions":{"3":"crc32c:..."},"lengths":{"day=2026-11-26/00003.jsonl":4711}}

`lengths` lists the files that a commit is writing to, with their lengths before it; it is empty between commits.
While it is not empty, `positions` are those before the commit.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import crc32c

from bettong_receiver.errors import PositionError

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Journal:
    """`positions` by partition, encoded; `lengths` before the current commit, by path within the folder."""

    application: str
    sink: str
    positions: Mapping[int, bytes] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Encodes the journal as the content of its file."""
        values = {
            "version": _VERSION,
            "application": self.application,
            "sink": self.sink,
            "positions": {str(partition): data.decode() for partition, data in self.positions.items()},
            "lengths": dict(self.lengths),
        }
        content = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        return b"crc32c:%08x\n" % crc32c.crc32c(content) + content


def decode(application: str, sink: str, data: bytes) -> Journal:
    """Decodes the journal of a sink. Raises PositionError, which says what is wrong but does not name the file."""
    checksum, _, content = data.partition(b"\n")
    if checksum != b"crc32c:%08x" % crc32c.crc32c(content):
        raise PositionError("its checksum does not fit its content")
    values: dict[str, Any] = json.loads(content)
    if values["version"] != _VERSION:
        raise PositionError(f"it is of version {values['version']}, expected {_VERSION}")
    if (values["application"], values["sink"]) != (application, sink):
        raise PositionError(
            f"it belongs to {values['application']}/{values['sink']}; give each sink a folder of its own"
        )
    positions = {int(partition): text.encode() for partition, text in values["positions"].items()}
    return Journal(application, sink, positions, values["lengths"])
