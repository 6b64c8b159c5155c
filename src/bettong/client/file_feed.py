"""Sends a file of messages to an open stream: how far it is, what it waits for, and how much of it is durable."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from bettong.client.message_files import Format, Portion, portions
from bettong.client.message_input import MessageFile, Piped, Wanted
from bettong.client.portion_sending import send_portions
from bettong.client.refused_rows import end_reading
from bettong.client.sender import Sender
from bettong.errors import BettongError, ClientError

# Refused rows that are shown for one file: more help nobody, and would fill a log.
SHOWN_MAX = 20
# After so long without progress, `wait` says what it waits for.
_QUIET_S = 3.0
_FLUSH_S_MAX = 10.0


class FileFeed:
    """Feeds one file to a stream. Call `send` in a thread of its own; all else is for one other thread.

    `frame`: most messages of a frame. `say`: called with a line for each of the first 20 rows that are left out;
    without it, the first such row ends the feed. `stopped`: set by `abandon`; an InterruptibleInput shares it.
    """

    def __init__(
        self,
        sender: Sender,
        file: MessageFile,
        kind: Format,
        *,
        frame: int,
        say: Callable[[str], None] | None = None,
        stopped: threading.Event | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.sender = sender
        self.file = file
        self.refused = 0
        self.messages = 0  # read so far
        self.fresh = 0  # of these, those that were not durable when the stream was opened
        self.durable_before = sender.acknowledged
        self.done: float | None = 0.0  # share of the file, None for a pipe
        self._kind = kind
        self._frame = frame
        self._say = say
        self._clock = clock
        self._stopped = stopped or threading.Event()
        self._progress: tuple[int, int] = (0, 0)
        self._progress_s = clock()

    def send(self) -> tuple[int, float]:
        """Sends the file and ends the stream; returns how many of its messages are new, and the seconds it took.

        When the file cannot be read to its end, the messages before become durable all the same. Raises BettongError.
        """
        begun, info = self._clock(), self.sender.source
        most = min(self._frame, info.frame_messages_max or self._frame)
        wanted = Wanted(info.schema, info.takes_rows, messages_max=most, bytes_max=info.frame_bytes_max)
        with self.sender:
            found = portions(
                self.file, self._kind, wanted, refuse=end_reading if self._say is None else self._leave_out
            )
            try:
                send_portions(self.sender, self._counted(found))
            except ClientError:
                raise
            except BettongError:
                with suppress(ClientError):
                    self.sender.flush(_FLUSH_S_MAX)
                raise
            self.sender.flush()
        return self.fresh, self._clock() - begun

    def abandon(self) -> None:
        """Closes at once, without waiting for receipts. Does nothing when closed already."""
        self._stopped.set()
        self.sender.abandon()

    def wait(self) -> str:
        """What the feed has waited for in the last seconds; empty while it makes progress. Call it regularly."""
        progress = (self.messages, self.sender.acknowledged)
        if progress != self._progress:
            self._progress, self._progress_s = progress, self._clock()
        if self._clock() - self._progress_s < _QUIET_S:
            return ""
        return self.sender.hindrance or (self.file.name if isinstance(self.file, Piped) else "")

    def _counted(self, found: Iterator[Portion]) -> Iterator[Portion]:
        for portion in found:
            yield portion
            self.messages += len(portion.body)
            if portion.last > self.durable_before:
                self.fresh += len(portion.body)
            self.done = portion.done

    def _leave_out(self, complaint: str) -> None:
        if self._stopped.is_set():  # else a file of refused rows only would be read to its end
            raise ClientError(f"{self.file} is not read any further")
        self.refused += 1
        if self._say is not None and self.refused <= SHOWN_MAX:
            self._say(complaint)
