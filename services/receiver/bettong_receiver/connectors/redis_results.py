"""The newest results of each sink in Redis, each exactly once: results and position in one transaction.

Redis is slower than a disk and may be unavailable for a while, so a background thread writes to it, and the buffer
is bounded by what Redis would keep: of each sink the newest `results_max` and the rest of their oldest frame.
While Redis is unavailable, files and subscribers go on; when it is back, it gets the newest results and position, and
lacks nothing that it would have kept. A crash before that loses nothing either: the log is read again from the
position in Redis. So it is where Redis came back as it was earlier (a failover, a last second that was not written),
and beside a second receiver: a delivery that finds another position than the one before has stored changes nothing.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from bettong.backoff import Backoff
from bettong.edges.redis_store import RedisSink, RedisStore
from bettong.errors import StoreError
from bettong_receiver.background import Background
from bettong_receiver.delivery.connector import (
    ConnectorUnavailableError,
    FrameMessages,
    MovingPosition,
    Refused,
    SinkBatch,
    SinkConnector,
)
from bettong_receiver.errors import PositionError
from bettong_receiver.positions import PositionKey, decode
from bettong_receiver.progress import SinkPartition

# One transaction of 0.2 ms per partition that moved: 16 partitions of one sink cost 3 % of a core at this interval.
DELIVER_INTERVAL_S = 0.1
# Pushing ten thousand results takes tens of ms of this process's time. Under load Redis gets a tenth of the time, and
# never gets the results in between, which it would drop at once.
_REST = 9.0
_REST_S_MAX = 2.0
# Wait between two attempts, in addition to the store's own retries.
_RETRY_S, _RETRY_S_MAX = 0.5, 2.0
_CLOSE_WAIT_S = 5.0
# The task retries; an outage must be reported within two seconds.
_OPEN_WAIT_S = 1.0
# A command is answered, or times out, within 15 s.
_SEND_WAIT_S = 20.0

# One transaction takes about as much, and what comes with it in one round. Redis serves nobody else meanwhile: for 1 GB
# that is two seconds, after which leases end. Bytes are those of frames: as JSON, columns take a few times as many, and
# names of fields for each message.
_DELIVERY_BYTES_MAX = 16 * 1024 * 1024
_DELIVERY_MESSAGES_MAX = 100_000

_Delivery = tuple[SinkPartition, list[bytes], bytes]


class RedisConnector(SinkConnector[bytes]):
    """See SinkConnector. If Redis fails after `open`, deliveries wait in bounded memory; nothing is raised.

    `flush` and `finish` raise ConnectorUnavailableError where Redis has another position than this connector stored.
    """

    def __init__(
        self,
        store: RedisStore,
        application: str,
        *,
        results_max: int,
        monotonic_s: Callable[[], float],
        on_wait: Callable[[str | None], None],
    ) -> None:
        """`on_wait` is called on another thread: with the reason why deliveries wait, with None when they proceed."""
        self._store = store
        self._sink = RedisSink(store)
        self._application = application
        self._results_max = results_max
        self._monotonic_s = monotonic_s
        self._on_wait = on_wait
        self._newest: dict[str, _Newest] = {}
        self._unsent: dict[SinkPartition, MovingPosition] = {}
        # The positions in Redis. Written by `open`, then by the background thread.
        self._positions: dict[SinkPartition, bytes | None] = {}
        self._next_s = monotonic_s()
        self._stopping = threading.Event()
        self._background = Background("redis-sink")

    def open(self, beginnings: Mapping[SinkPartition, int]) -> dict[SinkPartition, bytes | None]:
        """See SinkConnector. Raises PositionError, naming the field, for a damaged or mismatched position."""
        try:
            self._store.wait(_OPEN_WAIT_S)
            self._positions = {key: self._stored(key) for key in beginnings}
        except StoreError as error:
            raise ConnectorUnavailableError(str(error)) from None
        return dict(self._positions)

    def deliver(self, batches: Sequence[SinkBatch[bytes]]) -> Refused:
        """See SinkConnector. Drops messages that are no longer among their sink's newest; `flush` sends the others."""
        for batch in batches:
            if self._results_max:  # else only positions are stored
                self._newest.setdefault(batch.key.sink, _Newest(self._results_max)).add(batch)
            self._unsent[batch.key] = batch.moving
        return {}

    def flush(self) -> None:
        """Sends what was delivered when the interval has passed and the previous send has ended."""
        if self._background.idle() and self._monotonic_s() >= self._next_s:
            self._start()

    def finish(self) -> None:
        """Sends what was delivered. If Redis is unavailable, the next run reads it from the log again."""
        if self._background.finish(_CLOSE_WAIT_S):
            self._start()
            self._background.finish(_CLOSE_WAIT_S)

    def close(self) -> None:
        """See SinkConnector. Waits for a send in progress, which must end before the next connector reads positions."""
        self._stopping.set()
        with suppress(ConnectorUnavailableError):
            self._background.finish(_SEND_WAIT_S)
        self._background.close()

    def _start(self) -> None:
        if not self._unsent:
            return
        messages: dict[SinkPartition, list[bytes]] = {key: [] for key in self._unsent}
        deliveries: list[_Delivery] = []
        for sink, newest in self._newest.items():
            for each in newest.drain():
                key = SinkPartition(sink, each.partition)
                messages[key].extend(each.messages)
                if each.position is not None:
                    deliveries.append((key, messages[key], each.position))
                    messages[key] = []
        ended = {key: position for key, _, position in deliveries}
        for key, moving in self._unsent.items():
            if (position := moving.encode()) != ended.get(key):
                deliveries.append((key, messages[key], position))
        self._unsent.clear()
        self._background.start(lambda: self._send(deliveries))

    def _send(self, deliveries: list[_Delivery]) -> None:
        """Retries each delivery until it succeeds. Repeating one whose answer was lost is harmless."""
        start_s = self._monotonic_s()
        backoff = Backoff(_RETRY_S, _RETRY_S_MAX)
        for key, messages, position in deliveries:
            while not self._stopping.is_set():
                try:
                    self._send_one(key, messages, position)
                except StoreError as error:
                    self._on_wait(str(error))
                    backoff.wait(self._stopping)
                else:
                    backoff.reset()
                    self._on_wait(None)
                    break
        end_s = self._monotonic_s()
        self._next_s = max(start_s + DELIVER_INTERVAL_S, end_s + min(_REST * (end_s - start_s), _REST_S_MAX))

    def _send_one(self, key: SinkPartition, messages: list[bytes], position: bytes) -> None:
        """Raises StoreError, and ConnectorUnavailableError where Redis has another position than the last one here."""
        if not self._results_max:
            self._sink.store_position(*key, position)
        elif not self._sink.deliver(
            *key,
            messages=messages,
            position=position,
            before=self._positions[key],
            results_max=self._results_max,
        ):
            raise ConnectorUnavailableError(
                f"Redis has another position of {key} than this receiver stored last: it came back as it was earlier,"
                " or another receiver delivers, too (run one); its newest results are read again from there"
            )
        self._positions[key] = position

    def _stored(self, key: SinkPartition) -> bytes | None:
        position = self._sink.position(*key)
        if position is not None:
            try:
                decode(PositionKey(self._application, *key), position)
            except PositionError as error:
                where = f"Redis, bettong:{self._application}:positions:{key.sink}, field {key.partition}"
                raise PositionError(
                    f"{where}: {error}; delete the field: the sink's newest results are read again from the log"
                ) from None
        return position


class _WaitingFrame(NamedTuple):
    """`position`: the stored one after it, if a delivery ends with it."""

    partition: int
    messages: Sequence[bytes]
    position: bytes | None = None


@dataclass(slots=True)
class _Newest:
    """At least the newest `results_max` messages of one sink, as frames."""

    results_max: int
    frames: deque[_WaitingFrame] = field(default_factory=deque)
    messages: int = 0
    # By partition, since the last position: how many messages, and their bytes in frames.
    _since: dict[int, tuple[int, int]] = field(default_factory=dict)

    def add(self, batch: SinkBatch[bytes]) -> None:
        count, size = self._since.get(batch.partition, (0, 0))
        for each in batch.frames:
            self.frames.append(_WaitingFrame(batch.partition, each.messages))
            self.messages += len(each.messages)
            count, size = count + len(each.messages), size + _encoded_bytes(each)
        if batch.frames and (size >= _DELIVERY_BYTES_MAX or count >= _DELIVERY_MESSAGES_MAX):
            self.frames[-1] = self.frames[-1]._replace(position=batch.position())
            count = size = 0
        self._since[batch.partition] = count, size
        while self.frames and self.messages - len(self.frames[0].messages) >= self.results_max:
            self.messages -= len(self.frames.popleft().messages)

    def drain(self) -> list[_WaitingFrame]:
        """Removes and returns all frames, oldest first."""
        frames, self.messages = list(self.frames), 0
        self.frames.clear()
        self._since.clear()
        return frames


def _encoded_bytes(frame: FrameMessages[bytes]) -> int:
    """The size of its messages in the log: as columns they are only made text once they are sent."""
    columns = frame.frame.columns
    return len(columns) if columns is not None else sum(map(len, frame.messages))
