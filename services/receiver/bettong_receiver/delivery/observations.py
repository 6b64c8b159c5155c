"""What people are told of deliveries while they go on: latency, and the newest dead letter."""

from collections.abc import Callable, Iterable, Sequence

from bettong import metrics
from bettong.topics import DEAD_LETTERS
from bettong_receiver.connectors.connector import SinkBatch
from bettong_receiver.formats import describe_dead_letter
from bettong_receiver.latency import Latency


class DeliveryObserver:
    """Sees the batches of one task. `figures` may be called from any thread."""

    def __init__(self, sinks: Iterable[str], *, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._latency = Latency(sinks)
        self._dead_letter_last = ""

    def observe(self, batches: Sequence[SinkBatch[bytes]]) -> None:
        """These batches have just been delivered."""
        now_ns = self._clock_ns()
        for batch in batches:
            sink = batch.place.sink
            for each in batch.frames:
                self._latency.record(
                    sink, sent_ns=each.frame.sent_ns, delivered_ns=now_ns, messages=len(each.messages)
                )
                if sink == DEAD_LETTERS and each.messages:
                    self._dead_letter_last = describe_dead_letter(each.messages[-1])

    def figures(self) -> dict[str, float | str]:
        """Latency as `Latency.figures` gives it, and the newest dead letter in a line."""
        return {**self._latency.figures(), metrics.DEAD_LETTER_LAST.name: self._dead_letter_last}
