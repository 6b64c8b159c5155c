"""The newest results of each sink in Redis, each exactly once: results and position in one transaction.

Redis is slow beside a disk and may be away for a while, so it is fed on a thread of its own, and what waits for
it is bounded by what it would keep: of each sink the newest `results_max` and the rest of their oldest frame.
While it is away, files and subscribers go on; when it is back, it gets the newest results and the newest position, and
lacks nothing that it would have kept. A crash before that costs nothing either: the log is read again from the
position in Redis.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bettong.backoff import Backoff
from bettong.edges.redis_store import RedisSink, RedisStore
from bettong.errors import StoreError
from bettong_receiver.background import Background
from bettong_receiver.delivery.connector import (
    ConnectorUnavailableError,
    MovingPosition,
    Refused,
    SinkBatch,
    SinkConnector,
)
from bettong_receiver.errors import PositionError
from bettong_receiver.positions import PositionKey, decode
from bettong_receiver.progress import SinkPartition

# One transaction a moved partition, 0.2 ms each: 16 partitions of one sink cost 3 % of a core at this pace.
DELIVER_INTERVAL_S = 0.1
# Pushing ten thousand results takes tens of ms of this process's time. With many coming in, Redis gets a tenth
# of the time, and the results in between, which it would drop again at once, not at all.
_REST = 9.0
_REST_S_MAX = 2.0
# Between two attempts, beside the time that the store itself tries.
_RETRY_S, _RETRY_S_MAX = 0.5, 2.0
_CLOSE_WAIT_S = 5.0
# The task tries again; an absence is to be reported within two seconds.
_OPEN_WAIT_S = 1.0
# A command gets its answer, or is given up, within 15 s.
_SEND_WAIT_S = 20.0

_Delivery = tuple[SinkPartition, list[bytes], bytes]


class RedisConnector(SinkConnector[bytes]):
    """See SinkConnector. While Redis is away after `open`, deliveries wait in memory, bounded; nothing is raised."""

    def __init__(
        self,
        store: RedisStore,
        application: str,
        *,
        results_max: int,
        monotonic_s: Callable[[], float],
        on_wait: Callable[[str | None], None],
    ) -> None:
        """`on_wait` gets, on another thread, why deliveries wait, and None when they do no more."""
        self._store = store
        self._sink = RedisSink(store)
        self._application = application
        self._results_max = results_max
        self._monotonic_s = monotonic_s
        self._on_wait = on_wait
        self._newest: dict[str, _Newest] = {}
        self._unsent: dict[SinkPartition, MovingPosition] = {}
        self._next_s = monotonic_s()
        self._stopping = threading.Event()
        self._background = Background("redis-sink")

    def open(self, beginnings: Mapping[SinkPartition, int]) -> dict[SinkPartition, bytes | None]:
        """See SinkConnector. Raises PositionError, naming the field, for a position that cannot be trusted."""
        try:
            self._store.wait(_OPEN_WAIT_S)
            return {key: self._stored(key) for key in beginnings}
        except StoreError as error:
            raise ConnectorUnavailableError(str(error)) from None

    def deliver(self, batches: Sequence[SinkBatch[bytes]]) -> Refused:
        """See SinkConnector. Drops messages that are no longer among the newest of their sink; `flush` sends others."""
        for batch in batches:
            sink, partition = batch.key
            newest = self._newest.setdefault(sink, _Newest(self._results_max))
            for each in batch.frames:
                newest.add(partition, each.messages)
            self._unsent[batch.key] = batch.moving
        return {}

    def flush(self) -> None:
        """Sends what was delivered when it is time to and Redis has taken what was sent before."""
        if self._background.idle() and self._monotonic_s() >= self._next_s:
            self._start()

    def finish(self) -> None:
        """Sends what was delivered, unless Redis is away: then it is read from the log again next time."""
        if self._background.finish(_CLOSE_WAIT_S):
            self._start()
            self._background.finish(_CLOSE_WAIT_S)

    def close(self) -> None:
        """See SinkConnector. What is on its way must not arrive behind the positions that the next one reads."""
        self._stopping.set()
        self._background.finish(_SEND_WAIT_S)
        self._background.close()

    def _start(self) -> None:
        if not self._unsent:
            return
        messages: dict[SinkPartition, list[bytes]] = {key: [] for key in self._unsent}
        for sink, newest in self._newest.items():
            for partition, found in newest.drain():
                messages[SinkPartition(sink, partition)].extend(found)
        deliveries = [(key, messages[key], moving.encode()) for key, moving in self._unsent.items()]
        self._unsent.clear()
        self._background.start(lambda: self._send(deliveries))

    def _send(self, deliveries: list[_Delivery]) -> None:
        """Tries each until Redis has it; a delivery that was carried out and not answered does no harm twice."""
        start_s = self._monotonic_s()
        backoff = Backoff(_RETRY_S, _RETRY_S_MAX)
        for (name, partition), messages, position in deliveries:
            while not self._stopping.is_set():
                try:
                    self._sink.deliver(
                        name, partition, messages=messages, position=position, results_max=self._results_max
                    )
                except StoreError as error:
                    self._on_wait(str(error))
                    backoff.wait(self._stopping)
                else:
                    backoff.reset()
                    self._on_wait(None)
                    break
        end_s = self._monotonic_s()
        self._next_s = max(start_s + DELIVER_INTERVAL_S, end_s + min(_REST * (end_s - start_s), _REST_S_MAX))

    def _stored(self, key: SinkPartition) -> bytes | None:
        position = self._sink.position(*key)
        if position is not None:
            try:
                decode(PositionKey(self._application, *key), position)
            except PositionError as error:
                where = f"Redis, bettong:{self._application}:positions:{key.sink}, field {key.partition}"
                raise PositionError(
                    f"{where}: {error}; delete the field: the sink's newest results are read anew from the log"
                ) from None
        return position


@dataclass(slots=True)
class _Newest:
    """Messages of one sink as frames of (partition, messages): at least the newest `results_max` of those added."""

    results_max: int
    frames: deque[tuple[int, Sequence[bytes]]] = field(default_factory=deque)
    messages: int = 0

    def add(self, partition: int, messages: Sequence[bytes]) -> None:
        self.frames.append((partition, messages))
        self.messages += len(messages)
        while self.frames and self.messages - len(self.frames[0][1]) >= self.results_max:
            self.messages -= len(self.frames.popleft()[1])

    def drain(self) -> list[tuple[int, Sequence[bytes]]]:
        """All of it, oldest first; none is left."""
        frames, self.messages = list(self.frames), 0
        self.frames.clear()
        return frames
