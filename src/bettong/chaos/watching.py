"""A subscriber of each sink, like a proper client: it resumes by position, and keeps all results.

It writes results to files like those of the receiver's file sink (`<folder>/<sink>/00003.jsonl`), so that both are
compared in the same manner.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from bettong.application.plan import Plan
from bettong.chaos.recovery import Arrival, newest_first_seen
from bettong.client.subscriber import Position, Subscriber
from bettong.errors import BettongError, ClientError, RefusedError
from bettong.topics import DEAD_LETTERS

_AGAIN_S = 0.05  # between two subscriptions after a cut: short, as it adds to the measured recovery
_CLOSE_S_MAX = 5.0


def file_endings(plan: Plan) -> dict[str, str]:
    """The ending of each sink's files, as the receiver names them."""
    return {sink.name: "jsonl" if sink.encoder is None else "bin" for sink in plan.sinks} | {
        DEAD_LETTERS: "jsonl"
    }


class ResultWatch:
    """A context manager: inside, a thread for each sink subscribes at `address` and writes to `folder`."""

    def __init__(self, address: str, endings: dict[str, str], folder: Path) -> None:
        self._watched = [_Watched(address, sink, ending, folder / sink) for sink, ending in endings.items()]

    def check(self) -> None:
        """Raises RefusedError when a receiver refused to resume from a position that it had sent."""
        for each in self._watched:
            if each.failure is not None:
                raise each.failure

    def arrivals(self) -> list[Arrival]:
        """The arrivals that brought newer results than all before, of all sinks."""
        return newest_first_seen(arrival for each in self._watched for arrival in list(each.arrivals))

    def offsets(self, sink: str) -> dict[int, int]:
        """The offsets of a sink's subscriber, by partition."""
        return next(each.offsets() for each in self._watched if each.sink == sink)

    def __enter__(self) -> Self:
        for each in self._watched:
            each.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._watched:
            each.close()


class _Watched:
    def __init__(self, address: str, sink: str, ending: str, folder: Path) -> None:
        self.sink = sink
        self.arrivals: list[Arrival] = []
        self.failure: BettongError | None = None
        self._address = address
        self._line_end = b"\n" if ending == "jsonl" else b""
        self._ending = ending
        self._folder = folder
        self._positions: list[Position] = []
        self._subscriber: Subscriber | None = None
        self._closed = threading.Event()
        self._newest_s = 0.0
        self.thread = threading.Thread(target=self._watch, name=f"watch-{sink}", daemon=True)

    def offsets(self) -> dict[int, int]:
        positions = self._subscriber.positions if self._subscriber is not None else []
        return {position.partition: position.offset for position in positions}

    def close(self) -> None:
        self._closed.set()
        if self._subscriber is not None:
            self._subscriber.close()
        self.thread.join(_CLOSE_S_MAX)

    def _watch(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        while not self._closed.is_set():
            # A new connection for each subscription: gRPC's back-off would grow with every cut.
            with Subscriber(self._address, self.sink, self._positions, reconnect_s=0.0) as subscriber:
                self._subscriber = subscriber
                try:
                    self._read(subscriber)
                except RefusedError as error:
                    self.failure = error
                    return
                except ClientError:
                    self._closed.wait(_AGAIN_S)
                finally:
                    self._positions = subscriber.positions

    def _read(self, subscriber: Subscriber) -> None:
        for result in subscriber:
            if self._closed.is_set():
                return
            self._append(result.position.partition, result.messages)
            due_s = result.sent_ns / 1e9
            if due_s > self._newest_s:
                self._newest_s = due_s
                self.arrivals.append(Arrival(time.time(), due_s))

    def _append(self, partition: int, messages: Iterable[bytes]) -> None:
        with (self._folder / f"{partition:05}.{self._ending}").open("ab") as file:
            file.write(b"".join(piece for message in messages for piece in (message, self._line_end)))
