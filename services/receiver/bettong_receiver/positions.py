"""Progress as bytes, for the file beside the results and for Redis. Pure.

    crc32c:9ae1c0de
    {"application":"market","sink":"rejected","partition":3,"offset":812,"length_bytes":4779,"origins":{...},...}

The first line is the checksum of the second. `origins` holds of each origin the highest sequence and when it was
last heard of by the age of the table (`age`: see `bettong.delivery`); `outbox` the dead letters that may be missing in
the log. JSON, because the reader of a position that fits no more is an operator.
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
    """What a position belongs to."""

    application: str
    sink: str
    partition: int


def encode(key: PositionKey, progress: DeliveryProgress, *, length_bytes: int = 0) -> bytes:
    """The position of `progress`. `length_bytes`: how long the file of results is there; 0 in Redis."""
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
    """The progress at a position of `key`, and the length of its file.

    Raises PositionError, naming what is wrong but not where `data` came from, when it cannot be trusted.
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
        _whole(values["offset"]), table, DeliveryCounts(**values["counts"]), values["adopts"]
    )
    progress.outbox = _outbox_of(values["outbox"])
    return progress, _whole(values["length_bytes"])


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"expected a whole number from 0 on, got {str(value)[:100]}")
    return value


def _table_of(sink: str, values: Mapping[str, Any]) -> DeliveryTable:
    """Without origins that are none of the sink's: receivers that accepted frames of other origins have left them."""
    origins = {
        Origin(origin): each for origin, each in values["origins"].items() if origin.startswith(f"{sink}/")
    }
    table = DeliveryTable.of(
        {origin: SequenceNumber(_whole(highest)) for origin, (highest, _) in origins.items()}
    )
    table.heard_ns = {origin: _whole(age_ns) for origin, (_, age_ns) in origins.items()}
    table.age_ns, table.clock_ns, table.behind = map(_whole, values["age"])
    return table


def _outbox(outbox: DeadLetterOutbox) -> dict[str, Any]:
    """Each reason once: a table that refuses one row often refuses the next for the same."""
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
