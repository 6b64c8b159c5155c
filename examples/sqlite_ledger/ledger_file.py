"""The file of `SqliteLedger`, and what is done to it.

staged     partition, message                what prepare has stored and nobody reads
ledger     id, partition, message            what everybody reads
positions  partition, owner, prepared, committed
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

_TABLES = """
CREATE TABLE IF NOT EXISTS staged (id INTEGER PRIMARY KEY, partition INTEGER, message BLOB);
CREATE TABLE IF NOT EXISTS ledger (id INTEGER PRIMARY KEY AUTOINCREMENT, partition INTEGER, message BLOB);
CREATE TABLE IF NOT EXISTS positions (partition INTEGER PRIMARY KEY, owner TEXT, prepared BLOB, committed BLOB);
"""
_PUBLISH = """
INSERT INTO ledger (partition, message) SELECT partition, message FROM staged WHERE partition = ? ORDER BY id;
DELETE FROM staged WHERE partition = ?;
UPDATE positions SET committed = prepared, prepared = NULL WHERE partition = ? AND prepared IS NOT NULL
"""
_LOCK_WAIT_S = 10.0


class LedgerFile:
    """Changed within `transaction` alone."""

    def __init__(self, path: Path) -> None:
        self._file = sqlite3.connect(path, timeout=_LOCK_WAIT_S, isolation_level=None)
        self._file.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;" + _TABLES)

    def close(self) -> None:
        """A transaction that is open is undone."""
        self._file.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """BEGIN IMMEDIATE, so that no other owner comes between looking and writing; then COMMIT or ROLLBACK."""
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._file.execute("ROLLBACK")
            raise
        self._file.execute("COMMIT")

    def give(self, partition: int, owner: str) -> None:
        """The partition has another owner from now on."""
        self._file.execute("INSERT OR IGNORE INTO positions (partition) VALUES (?)", (partition,))
        self._file.execute("UPDATE positions SET owner = ? WHERE partition = ?", (owner, partition))

    def position(self, partition: int) -> tuple[str | None, bytes | None]:
        """Whose the partition is, and the position behind the last batch that everybody reads."""
        query = "SELECT owner, committed FROM positions WHERE partition = ?"
        owner, committed = self._file.execute(query, (partition,)).fetchone() or (None, None)
        return owner, committed

    def stage(self, partition: int, messages: Sequence[bytes], position: bytes) -> None:
        """Stores a batch, and the position behind it."""
        rows = [(partition, message) for message in messages]
        self._file.executemany("INSERT INTO staged (partition, message) VALUES (?, ?)", rows)
        self._file.execute("UPDATE positions SET prepared = ? WHERE partition = ?", (position, partition))

    def publish(self, partition: int) -> None:
        """Moves what is staged into the ledger; nothing when nothing is."""
        for statement in _PUBLISH.split(";"):
            self._file.execute(statement, (partition,))


def read_ledger(path: Path, partition: int) -> list[bytes]:
    """The messages of a partition that everybody sees, in order."""
    with closing(sqlite3.connect(path)) as file:
        query = "SELECT message FROM ledger WHERE partition = ? ORDER BY id"
        return [bytes(message) for (message,) in file.execute(query, (partition,))]
