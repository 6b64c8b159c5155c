"""Where reading an external system starts: at the stored offsets, checked against the partitions' bounds. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from bettong.application.external.transport import Transport
from bettong.errors import FrameError, LogError, LogTruncatedError
from bettong.identifiers import SequenceNumber
from bettong_sender.batcher import BatchBoundaries


@dataclass(frozen=True, slots=True)
class Beginning:
    """One partition's boundaries, the first offset to read, and how many records before it were deleted unread."""

    boundaries: BatchBoundaries
    start: int
    lost: int = 0


def begin(
    transport: Transport,
    stored: Mapping[bytes, bytes],
    bounds: Mapping[int, tuple[int, int]],
    *,
    identity: str,
) -> dict[int, Beginning]:
    """Decides for each partition of `bounds`: (oldest offset, offset after the newest).

    `identity`: see `ExternalReader`. Raises LogTruncatedError when it is not the stored one, or when records between
    the stored offset and the bounds are missing, LogError for stored bytes that are not batch boundaries.
    """
    is_new = not any(key_of(transport, partition) in stored for partition in bounds)
    return {
        partition: _beginning(transport, stored, partition, first, end, identity, is_new=is_new)
        for partition, (first, end) in bounds.items()
    }


def key_of(transport: Transport, partition: int) -> bytes:
    """The key of a partition's stored batch boundaries: its stream, so that each topic has keys of its own."""
    return transport.stream(partition).encode()


def _beginning(
    transport: Transport,
    stored: Mapping[bytes, bytes],
    partition: int,
    first: int,
    end: int,
    identity: str,
    *,
    is_new: bool,
) -> Beginning:
    where = f"{transport.title}/{partition}"
    data = stored.get(key_of(transport, partition))
    if data is None:
        # A partition that was added later is read from its first offset.
        fresh = end if transport.start == "latest" and is_new else first
        return Beginning(BatchBoundaries(SequenceNumber(fresh), identity=identity), fresh)
    try:
        boundaries = BatchBoundaries.decode(data)
    except FrameError as error:
        raise LogError(f"the stored batch boundaries of {where}: {error}") from None
    if identity and boundaries.identity not in ("", identity):
        raise LogTruncatedError(
            f"{where} was deleted and made anew: its id is {identity}, and {boundaries.identity} was read up to"
            f" offset {boundaries.durable}; read the new one under another name"
        )
    boundaries.identity = identity or boundaries.identity
    known = max([boundaries.durable, *boundaries.ends])
    if end < known:
        raise LogTruncatedError(
            f"{where} ends at offset {end}, but was read up to {known}: it was made anew, or lost records;"
            " read the new one under another name"
        )
    if first > boundaries.durable and transport.on_lost == "stop":
        raise LogTruncatedError(
            f"{where}: records {boundaries.durable} to {first - 1} were deleted before they were read;"
            " describe it with on_lost='skip' to go on with the oldest, and lengthen its retention"
        )
    start = max(boundaries.durable, first)
    return Beginning(boundaries, start, start - boundaries.durable)
