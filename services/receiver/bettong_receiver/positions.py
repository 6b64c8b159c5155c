"""Encodes progress as bytes, for the file beside the results and for destinations that store positions. Pure.

    crc32c:9ae1c0de
    {"application":"market","sink":"rejected","partition":3,"offset":812,"length_bytes":4779,"origins":{...},...}

The first line is the checksum of the second. `origins` holds for each origin the highest sequence number and when it
was last seen, in the table's age (`age`: see `bettong.delivery`); `outbox` holds the dead letters that may be missing
in the log. It is JSON because an operator has to read a position that no longer matches.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import crc32c

from bettong.delivery import DeliveryTable
from bettong.identifiers import Origin, SequenceNumber
from bettong_receiver.errors import PositionError
from bettong_receiver.progress import DeadLetterOutbox, DeliveryCounts, DeliveryProgress

_VERSION = 3


@dataclass(frozen=True, slots=True)
class PositionKey:
    """The application, sink and partition of a position."""

    application: str
    sink: str
    partition: int


def encode(key: PositionKey, progress: DeliveryProgress, *, length_bytes: int = 0) -> bytes:
    """Encodes `progress`. `length_bytes`: the length of the result file at this position; 0 without a file."""
    table = progress.table
    values = {
        "version": _VERSION,
        **dataclasses.asdict(key),
        "offset": progress.offset,
        "length_bytes": length_bytes,
        "origins": {
            origin: [highest, table.heard_ns.get(origin, 0)] for origin, highest in table.highest.items()
        },
        "age": [table.age_ns, table.clock_ns, table.behind],
        "counts": dataclasses.asdict(progress.counts),
        "adopts": progress.adopts,
        "outbox": _outbox(progress.outbox),
    }
    content = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    return b"crc32c:%08x\n" % crc32c.crc32c(content) + content


def decode(key: PositionKey, data: bytes) -> tuple[DeliveryProgress, int]:
    """Decodes the progress of `key`, and the length of its file.

    Raises PositionError for damaged or mismatched data; it says what is wrong but not where `data` came from.
    """
    checksum, _, content = data.partition(b"\n")
    if checksum != b"crc32c:%08x" % crc32c.crc32c(content):
        raise PositionError("its checksum does not fit its content")
    try:
        return _read(key, json.loads(content))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise PositionError(f"its content is no position: {type(error).__name__}: {error}") from None


def _read(key: PositionKey, values: Mapping[str, Any]) -> tuple[DeliveryProgress, int]:
    if values["version"] != _VERSION:
        raise PositionError(f"it is of version {values['version']}, expected {_VERSION}")
    found = PositionKey(values["application"], values["sink"], values["partition"])
    if found != key:
        raise PositionError(f"it belongs to partition {found.partition} of {found.application}/{found.sink}")
    table = _table_of(key.sink, values)
    progress = DeliveryProgress(
        _non_negative(values["offset"]), table, DeliveryCounts(**values["counts"]), values["adopts"]
    )
    progress.outbox = _outbox_of(values["outbox"])
    return progress, _non_negative(values["length_bytes"])


def _non_negative(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"expected a whole number from 0 on, got {str(value)[:100]}")
    return value


def _table_of(sink: str, values: Mapping[str, Any]) -> DeliveryTable:
    """Drops origins of other sinks: older receivers accepted their frames."""
    origins = {
        Origin(origin): each for origin, each in values["origins"].items() if origin.startswith(f"{sink}/")
    }
    table = DeliveryTable.of(
        {origin: SequenceNumber(_non_negative(highest)) for origin, (highest, _) in origins.items()}
    )
    table.heard_ns = {origin: _non_negative(age_ns) for origin, (_, age_ns) in origins.items()}
    table.age_ns, table.clock_ns, table.behind = map(_non_negative, values["age"])
    return table


def _outbox(outbox: DeadLetterOutbox) -> dict[str, Any]:
    """Stores each reason once: a table often refuses many rows for the same reason."""
    reasons = list(dict.fromkeys(reason for found in outbox.pending.values() for reason in found.values()))
    numbers = {reason: number for number, reason in enumerate(reasons)}
    pending = [
        [offset, index, numbers[reason]]
        for offset, found in outbox.pending.items()
        for index, reason in found.items()
    ]
    return {"last": outbox.last, "pending": pending, "reasons": reasons}


def _outbox_of(values: Mapping[str, Any]) -> DeadLetterOutbox:
    outbox = DeadLetterOutbox(last=values["last"])
    for offset, index, number in values["pending"]:
        outbox.pending.setdefault(offset, {})[index] = values["reasons"][number]
    return outbox
