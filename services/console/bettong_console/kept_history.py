"""Keeps the history in Redis, best effort: a console that restarts continues it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

from bettong.config.connection_settings import RedisConnection
from bettong.edges.redis_store import RedisRings, RedisStore, RingChange
from bettong.errors import StoreError, StoreUnavailableError
from bettong.logs import Logger
from bettong_console.history import SPANS, History
from bettong_console.packed_history import PackedHistory

# Short, because people look at the console meanwhile.
_ANSWER_WAIT_S_MAX = 1.5


class KeptHistory:
    """The kept history of one application.

    `read`, `take_lease` and `write` block, and may run in another thread than the rest, one at a time.
    """

    def __init__(
        self, history: History, redis: RedisConnection, application: str, writer: str, log: Logger
    ) -> None:
        """`writer`: a unique name of this console."""
        self._store = RedisStore(redis, application, answer_wait_s_max=_ANSWER_WAIT_S_MAX)
        self._rings = RedisRings(self._store)
        self._packed = PackedHistory(history)
        self._writer = writer
        self._log = log
        self._is_read = False
        # Whether this console held the lease at the last call.
        self._writes = False
        self._complaint = ""

    def read(self) -> Mapping[str, Mapping[bytes, bytes]] | None:
        """The history of an earlier console; None when it was read already, or Redis does not answer."""
        if self._is_read:
            return None
        try:
            return {name: self._rings.read(name) for name in SPANS}
        except StoreError as error:
            self._complain("the earlier history is not read yet", error)
            return None

    def restore(self, found: Mapping[str, Mapping[bytes, bytes]] | None, now_s: float) -> None:
        """Takes over the history that was read, once."""
        if found is None or self._is_read:
            return
        self._is_read = True
        for name, fields in found.items():
            self._packed.restore(SPANS[name], now_s, fields)

    def take_lease(self) -> None:
        """Tries to take the lease to write, unless this console holds it; blocks."""
        if self._is_read and not self._writes:
            self._writes = self._done(lambda: self._rings.hold(self._writer))

    def changes(self) -> Mapping[str, RingChange]:
        """The changes to write; none before the earlier history was read, or while another console writes."""
        return self._packed.changes() if self._is_read and self._writes else {}

    def write(self, changes: Mapping[str, RingChange]) -> bool:
        """Writes changes; returns False if another console writes, or Redis does not answer."""
        if not changes:
            return False
        self._writes = self._done(lambda: self._rings.write(self._writer, changes))
        if self._writes:
            self._complaint = ""
        return self._writes

    def note_written(self) -> None:
        """Notes that the last `changes` are written."""
        self._packed.note_written()

    def close(self) -> None:
        """Lets another console write, and closes the connection. Blocks, and never raises."""
        with contextlib.suppress(StoreError):
            self._rings.release(self._writer)
        self._store.close()

    def _done(self, command: Callable[[], bool]) -> bool:
        try:
            return command()
        except StoreUnavailableError:
            return False  # pages show already that it is away
        except StoreError as error:
            self._complain("the history is kept only in this console's memory: Redis does not take it", error)
            return False

    def _complain(self, text: str, error: StoreError) -> None:
        """Logs a warning once, not with each inspection; again after a success."""
        if text != self._complaint:
            self._log.warning(text, fault=str(error))
        self._complaint = text
