"""The newest results of each sink in Redis, each exactly once: results and position in one transaction.

Redis is slow beside a disk and may be away for a while, so it is fed on a thread of its own, and what waits for
it is bounded by what it would keep: of each sink the newest `results_max`. While it is away, files and
subscribers go on; when it is back, it gets the newest results and the newest position, and lacks nothing that it
would have kept. A crash before that costs nothing either: the log is read again from the position in Redis.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping

from bettong.edges.redis_store import RedisSink
from bettong.errors import StoreError
from bettong_receiver.background import Background
from bettong_receiver.errors import PositionError
from bettong_receiver.positions import Place, decode, encode
from bettong_receiver.progress import Progress, SinkPartition

# One transaction a moved partition, 0.2 ms each: 16 partitions of one sink cost 3 % of a core at this pace.
DELIVER_INTERVAL_S = 0.1
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
        on_wait: Callable[[str | None], None],
    ) -> None:
        """Reads the positions of the partitions in `beginnings`: where their logs begin now.

        `on_wait` is told, on another thread, why deliveries wait, and None when they do no more. Raises StoreError when
        Redis is away now, PositionError for a position that cannot be trusted.
        """
        self._sink = sink
        self._application = application
        self._results_max = results_max
        self._on_wait = on_wait
        self.progress = {
            key: self._stored(key) or Progress.fresh(beginning) for key, beginning in beginnings.items()
        }
        self._handed = {key: progress.offset for key, progress in self.progress.items()}
        self._taken: dict[str, deque[tuple[int, bytes]]] = {}
        self._next_s = 0.0
        self._stopping = threading.Event()
        self._background = Background("redis-sink")

    def take(self, key: SinkPartition, messages: list[bytes]) -> None:
        """Takes the messages of a frame; drops those that are no longer among the newest of their sink."""
        name, partition = key
        if name not in self._taken:
            self._taken[name] = deque(maxlen=self._results_max)
        self._taken[name].extend([(partition, message) for message in messages])

    def flush(self, now_s: float) -> None:
        """Hands what was taken to Redis when it is time to and Redis has the last lot."""
        if now_s >= self._next_s and self._background.idle():
            self._deliver()
            self._next_s = now_s + DELIVER_INTERVAL_S

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
        lots: dict[SinkPartition, list[bytes]] = {key: [] for key in moved}
        for name, results in self._taken.items():
            for partition, message in results:
                lots[name, partition].append(message)
            results.clear()
        deliveries = [(key, lots[key], encode(self._place(key), self.progress[key])) for key in moved]
        self._background.start(lambda: self._send(deliveries))
        self._handed |= {key: self.progress[key].offset for key in moved}

    def _send(self, deliveries: list[_Delivery]) -> None:
        """Tries each until Redis has it; a delivery that was carried out and not answered does no harm twice."""
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
