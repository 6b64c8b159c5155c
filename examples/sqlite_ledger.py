"""A sink of one's own: payments in a SQLite file, each exactly once, by `bettong.TwoPhaseSink`.

echo '{"ledger": {"path": "ledger.db"}}' > connections.json
BETTONG_CONNECTIONS=connections.json bettong run examples/sqlite_ledger.py
echo '{"account": "ann", "cents": 1250}' > payments.jsonl; bettong send payments payments.jsonl
sqlite3 ledger.db 'SELECT message FROM ledger'

SQLite could store messages and position in one transaction. Here `prepare` and `commit` are apart, as they are where
two things must happen: an upload and its publication, a staged file and its renaming.

    staged     partition, message                what prepare has stored and nobody reads
    ledger     id, partition, message            what everybody reads
    positions  partition, owner, prepared, committed
"""

import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bettong

_TABLES = """
CREATE TABLE IF NOT EXISTS staged (id INTEGER PRIMARY KEY, partition INTEGER, message BLOB);
CREATE TABLE IF NOT EXISTS ledger (id INTEGER PRIMARY KEY AUTOINCREMENT, partition INTEGER, message BLOB);
CREATE TABLE IF NOT EXISTS positions (partition INTEGER PRIMARY KEY, owner TEXT, prepared BLOB, committed BLOB);
"""
_LOCK_WAIT_S = 10.0


class SqliteLedger:
    """See `bettong.TwoPhaseSink`. The file may be read by anybody at any time."""

    def __init__(self, path: Path) -> None:
        self._owner = str(uuid.uuid4())
        self._batches: dict[int, list[bytes]] = {}
        self._file = sqlite3.connect(path, timeout=_LOCK_WAIT_S, isolation_level=None)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = FULL")
        self._file.executescript(_TABLES)

    def recover(self, partition: int) -> bytes | None:
        """Takes the partition over; a batch that another owner prepared is committed."""
        with self._transaction():
            self._file.execute("INSERT OR IGNORE INTO positions (partition) VALUES (?)", (partition,))
            self._file.execute("UPDATE positions SET owner = ? WHERE partition = ?", (self._owner, partition))
            self._publish(partition)
            query = "SELECT committed FROM positions WHERE partition = ?"
            (committed,) = self._file.execute(query, (partition,)).fetchone()
        return None if committed is None else bytes(committed)

    def begin(self, partition: int) -> None:
        """A batch is kept in memory until it is prepared."""
        self._batches[partition] = []

    def write(self, partition: int, messages: Sequence[bytes]) -> None:
        """See `begin`."""
        self._batches[partition].extend(messages)

    def prepare(self, partition: int, position: bytes) -> None:
        """Stages the batch."""
        rows = [(partition, message) for message in self._batches.pop(partition)]
        with self._transaction():
            self._own(partition)
            self._file.executemany("INSERT INTO staged (partition, message) VALUES (?, ?)", rows)
            self._file.execute("UPDATE positions SET prepared = ? WHERE partition = ?", (position, partition))

    def commit(self, partition: int, position: bytes) -> None:
        """Publishes what is staged."""
        del position
        with self._transaction():
            self._own(partition)
            self._publish(partition)

    def close(self) -> None:
        """What was prepared stays staged, for `recover`."""
        self._file.close()

    def _publish(self, partition: int) -> None:
        """Moves what is staged into the ledger; nothing when nothing is."""
        self._file.execute(
            "INSERT INTO ledger (partition, message)"
            " SELECT partition, message FROM staged WHERE partition = ? ORDER BY id",
            (partition,),
        )
        self._file.execute("DELETE FROM staged WHERE partition = ?", (partition,))
        self._file.execute(
            "UPDATE positions SET committed = prepared, prepared = NULL"
            " WHERE partition = ? AND prepared IS NOT NULL",
            (partition,),
        )

    def _own(self, partition: int) -> None:
        query = "SELECT owner FROM positions WHERE partition = ?"
        if self._file.execute(query, (partition,)).fetchone() != (self._owner,):
            raise RuntimeError(f"partition {partition} of the ledger belongs to another receiver now")

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._file)


class _Transaction:
    """BEGIN IMMEDIATE, so that no other owner comes between looking and writing; then COMMIT or ROLLBACK."""

    def __init__(self, file: sqlite3.Connection) -> None:
        self._file = file

    def __enter__(self) -> None:
        self._file.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._file.execute("COMMIT" if kind is None else "ROLLBACK")


def open_ledger(options: Mapping[str, Any]) -> SqliteLedger:
    """What the receiver calls, with the connection's entry."""
    return SqliteLedger(Path(options["path"]))


def read_ledger(path: Path, partition: int) -> list[bytes]:
    """The messages of a partition that everybody sees, in order."""
    with sqlite3.connect(path) as file:
        query = "SELECT message FROM ledger WHERE partition = ? ORDER BY id"
        found = [bytes(message) for (message,) in file.execute(query, (partition,))]
    file.close()
    return found


@dataclass(slots=True)
class Payment:
    """Money that comes to an account."""

    account: str
    cents: int


def is_payment(payment: Payment) -> bool:
    """Leaves out what moves nothing."""
    return payment.cents != 0


app = bettong.Application("payments-ledger")
(
    app.source("payments", schema=Payment, key="account")
    .filter(is_payment)
    .sink("ledger", to=bettong.TwoPhase(open_ledger))
)
