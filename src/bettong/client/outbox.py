"""The outbox of a client's stream: frames without a receipt, and credits. Pure; its owner locks it.

acknowledged | in flight | unsent |
             '---- frames -------'     all are sent again, in this order, when a session is lost
"""

import math
from collections import deque

from bettong.client.joining import FRAME_GAP_S, IN_FLIGHT_MAX, Joining, PendingFrame
from bettong.v1.ingest_pb2 import IngestRequest, Receipt


class Outbox:
    """Holds at most as many frames as a session has credits. `joining`: None where each frame stays as it is.

    Times are those of a monotonic clock.
    """

    def __init__(self, acknowledged: int) -> None:
        self.acknowledged = acknowledged
        self.dead_letters = 0
        self.joining: Joining | None = None
        self._frames: deque[PendingFrame] = deque()
        self._in_flight = 0
        self._credits = 0
        self._newest = 0
        self._sent_s = -math.inf

    @property
    def is_empty(self) -> bool:
        """Whether every frame has a receipt."""
        return not self._frames

    @property
    def has_room(self) -> bool:
        """Whether there is a credit for one more frame; False without a session."""
        return self._credits > len(self._frames) - self._in_flight

    def wait_s(self, now_s: float) -> float | None:
        """How long to wait before the next frame is sent; None: until a receipt or another frame arrives."""
        if not self._credits or self._in_flight == len(self._frames):
            return None
        is_last = self._in_flight == len(self._frames) - 1
        if self.joining is None or not is_last or not self.joining.may_grow(self._frames[-1]):
            return 0.0
        return max(0.0, self._sent_s + FRAME_GAP_S - now_s) if self._in_flight < IN_FLIGHT_MAX else None

    def resumed(self, acknowledged: int) -> None:
        """Notes that frames up to `acknowledged` were durable before the first session. Call it before any `put`."""
        self.acknowledged = max(self.acknowledged, acknowledged)

    def put(self, request: IngestRequest, messages: int) -> bool:
        """Queues a frame, numbered above all earlier ones; False when there is no room.

        A frame that is acknowledged already is dropped: another program fed the stream further than this one.
        """
        sequence = request.frame.sequence
        if not self._newest < sequence <= self.acknowledged:
            new = PendingFrame(request, messages)
            if not (self.joining is not None and self._frames and self.joining.join(self._frames[-1], new)):
                if not self.has_room:
                    return False
                self._frames.append(new)
        self._newest = max(self._newest, sequence)
        return True

    def opened(self, credits_: int) -> None:
        """Notes that a session has started, with so many credits."""
        self._in_flight, self._credits = 0, credits_

    def lost(self) -> None:
        """Notes that the session has ended: all frames without a receipt are unsent again."""
        self._in_flight, self._credits = 0, 0

    def next(self, now_s: float) -> IngestRequest | None:
        """The next frame to send, which spends a credit; None when none is to be sent now."""
        if self.wait_s(now_s) != 0.0:
            return None
        frame = self._frames[self._in_flight]
        self._in_flight += 1
        self._credits -= 1
        frame.sent, self._sent_s = True, now_s
        return frame.parts[0] if self.joining is None else self.joining.request(frame)

    def received(self, receipt: Receipt) -> None:
        """Drops the frames that a receipt acknowledges, and adds its credits."""
        self.acknowledged = max(self.acknowledged, receipt.acknowledged)
        self.dead_letters += receipt.dead_letters
        self._credits += receipt.credits
        while self._frames and self._frames[0].sequence <= self.acknowledged:
            self._frames.popleft()
            # The receipt may acknowledge frames of an earlier session that this one has not sent again yet.
            self._in_flight = max(0, self._in_flight - 1)
