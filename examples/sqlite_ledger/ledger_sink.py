"""Messages in a SQLite file, each exactly once, by `bettong.TwoPhaseSink`.

SQLite could store messages and position in one transaction. Here `prepare` and `commit` are apart, as they are where
two things must happen: an upload and its publication, a staged file and its renaming.
"""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ledger_file import LedgerFile


class SqliteLedger:
    """See `bettong.TwoPhaseSink`. The file may be read by anybody at any time."""

    def __init__(self, path: Path) -> None:
        self._owner = str(uuid.uuid4())
        self._batches: dict[int, list[bytes]] = {}
        self._file = LedgerFile(path)

    def recover(self, partition: int) -> bytes | None:
        """Takes the partition over; a batch that another owner prepared is committed."""
        with self._file.transaction():
            self._file.give(partition, self._owner)
            self._file.publish(partition)
            _, committed = self._file.position(partition)
        return committed

    def begin(self, partition: int) -> None:
        """A batch is kept in memory until it is prepared."""
        self._batches[partition] = []

    def write(self, partition: int, messages: Sequence[bytes]) -> None:
        """See `begin`."""
        self._batches[partition].extend(messages)

    def prepare(self, partition: int, position: bytes) -> None:
        """Stages the batch."""
        messages = self._batches.pop(partition)
        with self._file.transaction():
            self._own(partition)
            self._file.stage(partition, messages, position)

    def commit(self, partition: int, position: bytes) -> None:
        """Publishes what is staged."""
        del position
        with self._file.transaction():
            self._own(partition)
            self._file.publish(partition)

    def close(self) -> None:
        """What was prepared stays staged, for `recover`."""
        self._file.close()

    def _own(self, partition: int) -> None:
        owner, _ = self._file.position(partition)
        if owner != self._owner:
            raise RuntimeError(f"partition {partition} of the ledger belongs to another receiver now")


def open_ledger(options: Mapping[str, Any]) -> SqliteLedger:
    """What the receiver calls, with the connection's entry."""
    return SqliteLedger(Path(options["path"]))
