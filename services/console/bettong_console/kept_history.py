"""Keeps the history in Redis, best effort: a console that starts anew goes on with it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from bettong.config.connection_settings import RedisConnection
from bettong.edges.redis_store import RedisRings, RedisStore, RingChange
from bettong.errors import StoreError
from bettong.logs import Logger
from bettong_console.history import SPANS, History
from bettong_console.packed_history import PackedHistory

# People look at the console meanwhile.
_ANSWER_WAIT_S_MAX = 1.5


class KeptHistory:
    """Of one application. `read` and `write` block, and may run in another thread than the rest, one at a time."""

    def __init__(
        self, history: History, redis: RedisConnection, application: str, writer: str, log: Logger
    ) -> None:
        """`writer`: a name that no other console has."""
        self._store = RedisStore(redis, application, answer_wait_s_max=_ANSWER_WAIT_S_MAX)
        self._rings = RedisRings(self._store)
        self._packed = PackedHistory(history)
        self._writer = writer
        self._log = log
        self._is_read = False

    def read(self) -> Mapping[str, Mapping[bytes, bytes]] | None:
        """What a console before wrote; None when it was read already, or Redis does not answer."""
        if self._is_read:
            return None
        try:
            return {name: self._rings.read(name) for name in SPANS}
        except StoreError as error:
            self._log.warning("the history before is not read yet", fault=str(error))
            return None

    def restore(self, found: Mapping[str, Mapping[bytes, bytes]] | None, now_s: float) -> None:
        """Takes over what was read, once."""
        if found is None or self._is_read:
            return
        self._is_read = True
        for name, fields in found.items():
            self._packed.restore(SPANS[name], now_s, fields)

    def changes(self) -> Mapping[str, RingChange]:
        """What is to be written; nothing before the history of before was read."""
        return self._packed.changes() if self._is_read else {}

    def write(self, changes: Mapping[str, RingChange]) -> bool:
        """Whether they are written; else another console writes, or Redis does not answer."""
        if not changes:
            return False
        try:
            return self._rings.write(self._writer, changes)
        except StoreError:
            return False  # pages say already that it is away

    def note_written(self) -> None:
        """What `changes` gave last is written."""
        self._packed.note_written()

    def close(self) -> None:
        """Lets another console write, and closes the connection. Blocks, and never raises."""
        with contextlib.suppress(StoreError):
            self._rings.release(self._writer)
        self._store.close()
