"""A session whose stage needs event times, as its feed keeps it; what the log answers, and when, a test says."""

from collections import deque

from bettong.identifiers import SequenceNumber
from bettong.ingest.session import Append, Session, SourceRoute, Taken
from bettong.v1.ingest_pb2 import Hello
from bettong_sender.ledger import Entry, Ledger
from bettong_sender.ticker import OriginProgress, Ticker
from tests.samples.sender import PARTITIONS, MemoryLog, readings_frame

TICK_S = 0.2
NOW_NS = 1_700_000_000 * 1_000_000_000
STAGE = "shop.stage.orders"
EVERY = range(PARTITIONS)


class SimulatedSession:
    """A session as its feed keeps it: what it hands to the log is answered when a test says so."""

    def __init__(
        self, route: SourceRoute, ticker: Ticker, *, stream: str = "feed", claimed: int = 0, durable: int = 0
    ) -> None:
        hello = Hello(source="orders", stream=stream, acknowledged=claimed)
        self.session = Session(route, hello, [-1] * PARTITIONS)
        self.ledger = Ledger(self.session.origin, window=100)
        self.ledger.grant(full=False)
        self.progress = OriginProgress(route, self.session, self.ledger)
        self.ticker = ticker
        ticker.add(self.progress)
        self.in_flight: dict[tuple[str, int], deque[tuple[Append, Entry]]] = {}
        self.entries: list[Entry] = []
        self.failed = False
        self._hand_over(
            self.session.open(0, NOW_NS, SequenceNumber(durable)),
            self.ledger.opening(SequenceNumber(durable)),
        )

    def send(self, sequence: int, *values: tuple[int, int], now_s: float = 0.0) -> None:
        """A frame of readings."""
        taken = self.session.take(readings_frame(sequence, *values), now_s, NOW_NS)
        self._hand_over(taken, self.ledger.spend(SequenceNumber(sequence), 1))

    def _hand_over(self, taken: Taken, entry: Entry) -> None:
        entry.appends, entry.watermark_ns = len(taken.appends), taken.watermark_ns
        self.entries.append(entry)
        for each in taken.appends:
            self.in_flight.setdefault((each.topic, each.partition), deque()).append((each, entry))

    def arrive(self, where: tuple[str, int], log: MemoryLog, *, lost: bool = False) -> None:
        """The log answers for the next record there; see `Feed.answered`."""
        append, entry = self.in_flight[where].popleft()
        entry.answered += 1
        if lost:
            entry.failed = self.failed = True
            self.session.lost(append.numbered_in)
            return
        log.extend([append])
        self.session.answered(append.numbered_in, len(log.frames[where]) - 1, opens=append.opens)
        if not self.failed and not append.opens:
            self.progress.note_watermark(append.partition, entry.watermark_ns)

    def arrive_all(self, log: MemoryLog) -> None:
        for where, waiting in self.in_flight.items():
            while waiting:
                self.arrive(where, log)

    def durable_ns(self) -> int:
        """The watermark of what lies in the log as a whole, and all before it."""
        newest = 0
        for entry in self.entries:
            if not entry.is_durable:
                break
            newest = max(newest, entry.watermark_ns)
        return newest
