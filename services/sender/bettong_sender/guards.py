"""Guards against frames that crash the sender: marks while a frame is read, and the record of earlier crashes."""

import asyncio
import contextlib
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Protocol

from structlog.stdlib import BoundLogger

from bettong.errors import LocalError, StoreError
from bettong.identifiers import Origin, SequenceNumber
from bettong.ingest.care import Care
from bettong_sender.deaths import SenderDeath, care_for
from bettong_sender.marks import DeadProcess, ReadingMarks, Slot, dead_processes, ensure_private

# A suspect frame waits so long for the frames that other sources are reading; they begin no new ones meanwhile. A frame
# takes milliseconds to read, seconds with a slow decoder; a decoder that never returns must not block all sources for
# long. A frame that takes longer is read beside the suspect, and a death then counts only if it is repeated: `deaths`.
_OTHERS_S_MAX = 5.0
# Others wait so long for the suspect: until it begins, and as long again.
_ALONE_S_MAX = 2 * _OTHERS_S_MAX

# After this a session opens without Redis' answer; Redis answers within milliseconds, or is away.
_STORE_S_MAX = 1.0

# So much of a damaged entry is logged.
_ENTRY_CHARACTERS_MAX = 200


class DeathStore(Protocol):
    """Where senders share deaths; see `RedisDeaths`. Calls may block for seconds and raise StoreError."""

    def note(self, deaths: Sequence[str]) -> None:
        """See RedisDeaths."""

    def known(self) -> list[str]:
        """See RedisDeaths."""


class _Readers:
    """A lock for reading frames: shared by all sources, or held by one alone. Its waits end: a decoder may hang."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._count = 0
        # The token of the source that reads alone.
        self._turn: object | None = None

    def enter(self, *, alone: bool) -> object | None:
        """Returns when the caller may read, with the token for `leave`."""
        with self._lock:
            turn = self._turn
            if turn is not None and not self._changed.wait_for(lambda: self._turn is None, _ALONE_S_MAX):
                # Its time is over: nobody waits for it again.
                self._end(turn)
            if not alone:
                self._count += 1
                return None
            self._turn = own = object()
            self._changed.wait_for(lambda: self._count == 0, _OTHERS_S_MAX)
            self._count += 1
            return own

    def leave(self, turn: object | None) -> None:
        """The caller has read its frame."""
        with self._lock:
            self._count -= 1
            self._end(turn)
            if self._turn is not None:
                self._changed.notify_all()

    def _end(self, turn: object | None) -> None:
        if turn is not None and turn is self._turn:
            self._turn = None
            self._changed.notify_all()


class SourceGuard:
    """The guard of one source. Its thread calls `begin` and `end`, one frame after the other."""

    def __init__(self, slot: Slot, known: "Guards") -> None:
        self._slot = slot
        self._known = known
        self._turn: object | None = None
        self._refuses = False

    def begin(self, origin: Origin, sequence: SequenceNumber) -> Care | None:
        """Marks that the frame is being read; returns how to read it if a sender died while reading it."""
        found = self._known.over(origin, sequence)
        care = care_for(found, self._slot.touch) if found else None
        self._refuses = care is not None and care.refuses
        self._turn = self._known.readers.enter(alone=care is not None)
        self._slot.begin(origin, sequence)
        return care

    def end(self) -> None:
        """The frame was read, or refused."""
        self._slot.end()
        if self._refuses:
            self._known.note_refusal()
        self._known.readers.leave(self._turn)


class Guards:
    """The guards of all sources of a sender. Made on the event loop.

    Without a usable `folder`, this sender's death leaves no mark; without `store`, or while it is away, only deaths
    recorded in the folder are known.
    """

    def __init__(
        self,
        sources: Iterable[str],
        *,
        folder: Path | None = None,
        store: DeathStore | None = None,
        logger: BoundLogger | None = None,
    ) -> None:
        names = list(sources)
        self.readers = _Readers()
        self._store = store
        self._logger = logger
        self._passed_over: set[str] = set()  # of the store's entries, at most as many as it holds
        self._marks: ReadingMarks | None = None
        self._unsent: list[SenderDeath] = []
        # Their files are kept until the store has these deaths: this sender may die before.
        self._dead: list[DeadProcess] = []
        self._found: dict[tuple[Origin, SequenceNumber], list[SenderDeath]] = {}
        if folder is not None:
            try:
                ensure_private(folder)
                for dead in dead_processes(folder):
                    if logger is not None:
                        _report_death(logger, dead)
                    if dead.deaths:
                        self._unsent += dead.deaths
                        self._dead.append(dead)
                self._marks = ReadingMarks(folder, len(names))
            except (LocalError, OSError) as error:
                if logger is not None:
                    logger.warning(
                        "marks cannot be written: a frame that kills the sender is not recognized",
                        reason=str(error),
                    )
        self._learn(())
        self._guards = {name: SourceGuard(self._slot(number), self) for number, name in enumerate(names)}

    def of(self, source: str) -> SourceGuard:
        """The guard of that source."""
        return self._guards[source]

    def over(self, origin: Origin, sequence: SequenceNumber) -> Sequence[SenderDeath]:
        """The deaths while that frame was read, ordered by message."""
        found = self._found  # replaced as a whole, by another thread
        return found.get((origin, sequence), ()) if found else ()

    async def refresh(self) -> None:
        """Exchanges deaths with the store, within a second. Never raises."""
        if self._store is not None:
            with contextlib.suppress(StoreError, TimeoutError):
                await asyncio.wait_for(asyncio.to_thread(self._exchange, self._store), _STORE_S_MAX)

    def note_refusal(self) -> None:
        """See ReadingMarks."""
        if self._marks is not None:
            self._marks.note_refusal()

    def close(self) -> None:
        """Ends cleanly. Deaths that the store does not have are left to the next sender."""
        for dead in self._dead:
            dead.release()
        if self._marks is not None:
            self._marks.close()

    def _exchange(self, store: DeathStore) -> None:
        own = list(self._unsent)
        if own:
            store.note([death.encode() for death in own])
            noted, self._dead = self._dead, []
            for dead in noted:
                dead.forget()
        known = {text: SenderDeath.decode(text) for text in store.known()}
        self._report({text for text, death in known.items() if death is None})
        self._learn(death for death in known.values() if death is not None)

    def _report(self, entries: set[str]) -> None:
        """Logs entries that are not deaths, once."""
        new, self._passed_over = entries - self._passed_over, entries
        if new and self._logger is not None:
            self._logger.warning(
                "entries of deaths in Redis are damaged or another version's, and are passed over",
                count=len(new),
                one=min(new)[:_ENTRY_CHARACTERS_MAX],
            )

    def _learn(self, known: Iterable[SenderDeath]) -> None:
        found: dict[tuple[Origin, SequenceNumber], list[SenderDeath]] = defaultdict(list)
        for death in sorted({*known, *self._unsent}, key=lambda each: (each.row, each.id)):
            found[death.origin, death.sequence].append(death)
        self._found = dict(found)

    def _slot(self, number: int) -> Slot:
        return (
            self._marks.slot(number)
            if self._marks is not None
            else Slot(memoryview(bytearray(1024)), count())
        )


def _report_death(logger: BoundLogger, dead: DeadProcess) -> None:
    for death in dead.deaths:
        frame = (death.origin, death.sequence, death.row)
        logger.error("a sender died while it read this frame", reading=frame, last_words=dead.words)
    if not dead.deaths:
        logger.error("a sender died, and read no frame", last_words=dead.words)
