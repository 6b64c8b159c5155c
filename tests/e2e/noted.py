"""An application that sums up notes, in a suite with a console, and what must have come of all that was sent."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from bettong.client import Sender
from bettong.edges.redis_store import RedisStore
from bettong.edges.redis_store.membership import Holders, read_holders
from bettong.local.suite import Suite
from tests.waiting import eventually

MENDED_S = 120.0

APPLICATION = """
import os
from dataclasses import dataclass
import bettong

@dataclass
class Note:
    who: str
    amount: bettong.i64

@dataclass
class Total:
    sum: int = 0

def add(note: Note, total: Total) -> Note:
    if note.amount == 13 and os.path.exists({broken!r}):
        raise ValueError("thirteen <b>is</b> unlucky")
    total.sum += note.amount
    return Note(note.who, total.sum)

app = bettong.Application("noted")
notes = app.source("notes", schema=Note, key="who")
notes.stateful(add, state=Total, name="add").sink("totals")
"""


@dataclass
class World:
    """The suite, and what must have come of all that was sent."""

    suite: Suite
    folder: Path
    program: Path
    broken: Path
    sums: Counter[str] = field(default_factory=Counter)
    results: list[tuple[str, int]] = field(default_factory=list)
    sent: int = 0

    @property
    def url(self) -> str:
        found = self.suite.record.console
        assert found is not None
        return found

    def pid(self, service: str) -> int:
        return self.suite.record.services[service].pid

    def feed(self, *notes: tuple[str, int]) -> None:
        """Sends notes, and says what must come of them; of 13 nothing, while that cannot be processed."""
        with Sender(self.suite.record.sender, "notes") as sender:
            sender.send_columns({"who": [who for who, _ in notes], "amount": [amount for _, amount in notes]})
            sender.flush(60)
        self.sent += len(notes)
        for who, amount in notes:
            if amount != 13:
                self.take(who, amount)

    def take(self, who: str, amount: int) -> None:
        self.sums[who] += amount
        self.results.append((who, self.sums[who]))

    def delivered(self) -> list[tuple[str, int]]:
        """In the order of keys; each key's in theirs."""
        files = sorted((self.folder / "results" / "totals").glob("*.jsonl"))
        lines = [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
        return sorted(((each["who"], each["amount"]) for each in lines), key=lambda each: each[0])

    def await_all(self) -> None:
        """Returns once what must come has come, and fails for anything else."""
        wanted = sorted(self.results, key=lambda each: each[0])
        eventually(lambda: len(self.delivered()) >= len(wanted), seconds=MENDED_S, what="all results")
        assert self.delivered() == wanted

    def asked(self, view: str) -> dict[str, Any]:
        found: dict[str, Any] = httpx2.get(f"{self.url}/api/now?view={view}", timeout=30).json()
        return found

    def holders(self) -> Holders:
        with RedisStore(self.suite.record.redis_connection, "noted") as store:
            return read_holders(store)


def answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/api/now", timeout=30).status_code == 200
    except httpx2.TransportError:
        return False
