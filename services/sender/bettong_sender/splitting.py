"""The splitting of one source: a thread that reads its frames, so that its decoder holds up no other source."""

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from bettong.ingest.refusal import Refusal, unavailable
from bettong.ingest.session import Taken
from bettong_sender.buffer import Buffer
from bettong_sender.turns import Turns

# The frames that splitters are at are waited for as long when the sender stops; clients resend what has no receipt.
CLOSE_S_MAX = 3.0


_Piece = TypeVar("_Piece")


@dataclass(frozen=True, slots=True)
class _Next:
    """There is one more piece of work, or none ever again."""

    last: bool = False


class Splitter(Generic[_Piece]):
    """A thread of one source, in which clients have their turns. Made and used on the event loop.

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
        """Frames that the thread has not begun with. From any thread."""
        return self._next.qsize()

    def put(self, client: str, feed: object, piece: _Piece) -> None:
        """Behind what this feed has put there before, when it is the client's turn."""
        self._turns.put(client, feed, piece)
        self._next.put(_Next())

    def close(self, wait_s: float) -> bool:
        """Drops what waits. Whether the frame that the thread is at was done within `wait_s`."""
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
            del piece  # else it would be held, with its frame and session, until there is another

    def _outcome(self, piece: _Piece) -> Taken | BaseException:
        try:
            return self._split(piece)
        except Refusal as refusal:
            # Where it was raised, and what it was raised for, hold the frame, all of its messages, for as long as the
            # refusal lives; and the session, which holds the refusal.
            refusal.__context__ = None
            return refusal.with_traceback(None)
        except BaseException as error:  # noqa: BLE001 - as an executor does: it is raised where it is awaited
            return error
