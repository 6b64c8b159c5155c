"""Splits the frames of one source in a thread of its own, so that a slow decoder delays no other source."""

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from bettong.ingest.refusal import Refusal, unavailable
from bettong.ingest.session import Taken
from bettong_sender.buffer import Buffer
from bettong_sender.turns import Turns

# A stopping sender waits so long for the frames being split; clients resend frames without a receipt.
CLOSE_S_MAX = 3.0


_Piece = TypeVar("_Piece")


@dataclass(frozen=True, slots=True)
class _Next:
    """Wakes the thread: one more piece is queued, or with `last` it ends."""

    last: bool = False


class Splitter(Generic[_Piece]):
    """One source's thread, shared fairly by its clients. Made and used on the event loop.

    `bytes_max` bounds `waiting`, the frames that have not been read. `split` and then `done` are called in the thread,
    `done` with the outcome. `close` calls `done` with a Refusal (UNAVAILABLE) for each frame that still waits.
    """

    def __init__(
        self,
        source: str,
        bytes_max: int,
        split: Callable[[_Piece], Taken],
        done: Callable[[_Piece, Taken | BaseException], None],
    ) -> None:
        self.waiting = Buffer(bytes_max)
        self._split = split
        self._done = done
        self._turns: Turns[_Piece] = Turns()
        self._next: queue.SimpleQueue[_Next] = queue.SimpleQueue()
        # A daemon: a decoder that never returns does not hold up the end of the process.
        self._thread = threading.Thread(target=self._run, name=f"splitter {source}", daemon=True)
        self._thread.start()

    @property
    def frames_waiting(self) -> int:
        """Frames that the thread has not begun. From any thread."""
        return self._next.qsize()

    def put(self, client: str, feed: object, piece: _Piece) -> None:
        """Queues a piece behind earlier ones of its feed; clients take turns."""
        self._turns.put(client, feed, piece)
        self._next.put(_Next())

    def close(self, wait_s: float) -> bool:
        """Refuses the queued frames; returns whether the frame being split was done within `wait_s`."""
        while (piece := self._turns.take()) is not None:
            self._done(piece, unavailable("the sender stops; connect again and resend what has no receipt"))
        self._next.put(_Next(last=True))
        self._thread.join(wait_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._next.get().last:
            piece = self._turns.take()
            if piece is not None:
                self._done(piece, self._outcome(piece))
            del piece  # else its frame and session would stay in memory until the next piece

    def _outcome(self, piece: _Piece) -> Taken | BaseException:
        try:
            return self._split(piece)
        except Refusal as refusal:
            # Its traceback and context would keep the frame in memory as long as the refusal, which the session holds.
            refusal.__context__ = None
            return refusal.with_traceback(None)
        except BaseException as error:  # noqa: BLE001 - as an executor does: raised to the awaiting caller
            return error
