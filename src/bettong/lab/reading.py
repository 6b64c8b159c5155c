"""The reader's side of a run: what comes out of a sink, and how late, by the step whose frame it was due with."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from itertools import accumulate

from hdrh.histogram import HdrHistogram

from bettong.client.subscriber import Subscriber
from bettong.errors import BettongError
from bettong.lab.spec import LoadStep
from bettong.threads import BlockThread

_HIGHEST_NS = 600_000_000_000
_DIGITS = 3
# Of the results of a second so many are kept one by one: enough for their median.
_PER_SECOND_MAX = 100
_CLOSE_S_MAX = 5.0


class SinkReading(BlockThread):
    """A context manager: inside, a thread subscribes to a sink until it has had as many bytes as are expected.

    A result counts for the step in which its frame was due, from `begin_s` and the warm-up on. How late it is counts
    from then too, so that what had to wait for a slow system is not left out (Gil Tene's coordinated omission).
    Results that were due before `begin_s` is known, or within the warm-up, are kept and not measured.

    `lates_ms`: of some results of each second.
    """

    def __init__(
        self, target: str, sink: str, size: int, steps: Sequence[LoadStep], *, warm_up_s: float
    ) -> None:
        super().__init__(f"lab-{sink}", close_s_max=_CLOSE_S_MAX)
        self.content = bytearray()
        self.begin_s = float("inf")
        self.last_s = 0.0
        self.done = threading.Event()
        self.failure: BettongError | None = None
        self.lates_ms: dict[int, list[float]] = {}
        self.histograms = [HdrHistogram(1, _HIGHEST_NS, _DIGITS) for _ in steps]
        self._subscriber = Subscriber(target, sink)
        self._size = size
        self._warm_up_s = warm_up_s
        self._ends_s = list(accumulate(step.seconds for step in steps))

    def _run(self) -> None:
        with self._subscriber as results:
            try:
                while len(self.content) < self._size and not self._stopping.is_set():
                    result = next(results)
                    self.last_s = time.time()
                    self.content += b"".join(result.messages)
                    self._note(result.sent_ns / 1e9, self.last_s)
            except StopIteration:
                return
            except BettongError as error:
                self.failure = error
        self.done.set()

    def _note(self, due_s: float, now_s: float) -> None:
        since_s = due_s - self.begin_s
        if since_s < self._warm_up_s or not self.histograms:
            return
        of_second = self.lates_ms.setdefault(int(since_s), [])
        if len(of_second) < _PER_SECOND_MAX:
            of_second.append((now_s - due_s) * 1e3)
        step = next((index for index, end_s in enumerate(self._ends_s) if since_s < end_s), -1)
        self.histograms[step].record_value(min(_HIGHEST_NS, max(1, round((now_s - due_s) * 1e9))))
