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

from bettong.edges.redis_store import RedisSink
from bettong.errors import StoreError
from bettong_receiver.background import Background
from bettong_receiver.errors import PositionError
from bettong_receiver.positions import Place, decode, encode
from bettong_receiver.progress import Progress, SinkPartition

# One transaction a moved partition, 0.2 ms each: 16 partitions of one sink cost 3 % of a core at this pace.
DELIVER_INTERVAL_S = 0.1
# Pushing ten thousand results takes tens of ms of this process's time. With many coming in, Redis gets a tenth
# of the time, and the results in between, which it would drop again at once, not at all.
_REST = 9.0
_REST_S_MAX = 2.0
# Between two tries, beside the time that the store itself tries.
_RETRY_S = 1.0
_CLOSE_WAIT_S = 5.0

_Delivery = tuple[SinkPartition, list[bytes], bytes]


class RedisTarget:
    """The results of all sinks in Redis. Use it from one thread."""

    def __init__(
        self,
        sink: RedisSink,
        application: str,
        beginnings: Mapping[SinkPartition, int],
        *,
        results_max: int,
        monotonic_s: Callable[[], float],
        on_wait: Callable[[str | None], None],
    ) -> None:
        """Reads the positions of the partitions in `beginnings`: where their logs begin now.

        `on_wait` is told, on another thread, why deliveries wait, and None when they do no more. Raises StoreError when
        Redis is away now, PositionError for a position that cannot be trusted.
        """
        self._sink = sink
        self._application = application
        self._results_max = results_max
        self._monotonic_s = monotonic_s
        self._on_wait = on_wait
        self.progress = {
            key: self._stored(key) or Progress.fresh(beginning) for key, beginning in beginnings.items()
        }
        self._handed = {key: progress.offset for key, progress in self.progress.items()}
        self._taken = {sink: _Newest(results_max) for sink, _ in beginnings}
        self._next_s = 0.0
        self._stopping = threading.Event()
        self._background = Background("redis-sink")

    def take(self, key: SinkPartition, messages: Sequence[bytes]) -> None:
        """Takes the messages of a frame; drops those that are no longer among the newest of their sink."""
        name, partition = key
        self._taken[name].add(partition, messages)

    def flush(self, now_s: float) -> None:
        """Hands what was taken to Redis when it is time to and Redis has the last batch."""
        if self._background.idle() and now_s >= self._next_s:
            self._deliver()

    def close(self, *, saving: bool) -> None:
        """`saving` delivers what was taken, unless Redis is away: then it is read from the log again next time."""
        if saving and self._background.finish(_CLOSE_WAIT_S):
            self._deliver()
            self._background.finish(_CLOSE_WAIT_S)
        self._stopping.set()
        self._background.close()

    def _deliver(self) -> None:
        moved = [key for key, progress in self.progress.items() if progress.offset != self._handed[key]]
        if not moved:
            return
        batches: dict[SinkPartition, list[bytes]] = {key: [] for key in moved}
        for name, newest in self._taken.items():
            for partition, messages in newest.taken():
                batches[name, partition].extend(messages)
        deliveries = [(key, batches[key], encode(self._place(key), self.progress[key])) for key in moved]
        self._background.start(lambda: self._send(deliveries))
        self._handed |= {key: self.progress[key].offset for key in moved}

    def _send(self, deliveries: list[_Delivery]) -> None:
        """Tries each until Redis has it; a delivery that was carried out and not answered does no harm twice."""
        start_s = self._monotonic_s()
        for (name, partition), messages, position in deliveries:
            while not self._stopping.is_set():
                try:
                    self._sink.deliver(
                        name, partition, messages=messages, position=position, results_max=self._results_max
                    )
                except StoreError as error:
                    self._on_wait(str(error))
                    self._stopping.wait(_RETRY_S)
                else:
                    self._on_wait(None)
                    break
        end_s = self._monotonic_s()
        self._next_s = max(start_s + DELIVER_INTERVAL_S, end_s + min(_REST * (end_s - start_s), _REST_S_MAX))

    def _stored(self, key: SinkPartition) -> Progress | None:
        data = self._sink.position(*key)
        if data is None:
            return None
        try:
            return decode(self._place(key), data)[0]
        except PositionError as error:
            where = f"Redis, bettong:{self._application}:positions:{key[0]}, field {key[1]}"
            raise PositionError(
                f"{where}: {error}; delete the field: the sink's newest results are read anew from the log"
            ) from None

    def _place(self, key: SinkPartition) -> Place:
        return Place(self._application, *key)


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

    def taken(self) -> list[tuple[int, Sequence[bytes]]]:
        """All of it, oldest first; none is left."""
        frames, self.messages = list(self.frames), 0
        self.frames.clear()
        return frames
