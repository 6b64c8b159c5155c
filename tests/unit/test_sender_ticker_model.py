"""TICKs by a model: whatever frames are lost, sent again, or answered in any order, no partition is reported more than
what the frames justify that lie in the log as a whole; and the newest reaches all within two ticks.
"""

from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.delivery import DeliveryTable, Verdict
from bettong.frames.frame import Frame, FrameKind, decode
from bettong.ingest.session import Append, Session
from bettong.v1.ingest_pb2 import Hello
from bettong_sender.ticker import Ticker
from tests.samples.sender import PARTITIONS, MemoryLog, readings, readings_frame, sensor_of
from tests.simulation.sender_session import EVERY, NOW_NS, STAGE, TICK_S, SimulatedSession

US = 1000
OUT_OF_ORDER_US = 2
FRAMES = 8
Frames = list[list[tuple[int, int]]]


@dataclass
class World:
    """A client whose frames are cut at random, its sessions in two senders, and the log."""

    frames: Frames
    keyed: bool
    log: MemoryLog = field(default_factory=MemoryLog)
    tickers: list[Ticker] = field(default_factory=lambda: [Ticker(), Ticker()])
    sessions: list[SimulatedSession] = field(default_factory=list)
    now_s: float = 100.0
    acknowledged: int = 0
    next: int = 0
    session: SimulatedSession | None = None

    def __post_init__(self) -> None:
        self.route = readings(
            key="sensor" if self.keyed else None, out_of_order=timedelta(microseconds=OUT_OF_ORDER_US)
        )

    def connect(self, sender: int) -> SimulatedSession:
        durable = max([self.acknowledged, *(each.ledger.acknowledged for each in self.sessions)])
        self.session = SimulatedSession(
            self.route, self.tickers[sender], claimed=self.acknowledged, durable=durable
        )
        self.next = self.acknowledged + 1
        self.sessions.append(self.session)
        return self.session

    def send(self, sender: int) -> None:
        if self.session is not None and self.session.failed:
            self.session = None
        running = self.session or self.connect(sender)
        if self.next <= len(self.frames):
            running.send(self.next, *self.frames[self.next - 1], now_s=self.now_s)
            self.next += 1

    def receipt(self) -> None:
        if self.session is not None:
            self.session.ledger.advance()
            self.acknowledged = max(self.acknowledged, self.session.ledger.acknowledged)

    def tick(self, sender: int, *, lost: int) -> None:
        """Of a round, records from `lost` on do not come to the log."""
        round_ = self.tickers[sender].round(self.now_s, TICK_S)
        appends = round_.number(self.now_s, NOW_NS).appends
        justified_ns = self.justified_ns()
        for append in appends[:lost]:
            (reported_ns,) = decode(append.value).watermarks.values()
            assert 0 < reported_ns <= justified_ns
            self.log.extend([append])
        if lost >= len(appends):
            round_.note_durable()

    def taken(self, partition: int) -> list[Frame]:
        """The client's frames that a consumer takes."""
        table, found = DeliveryTable(), []
        for frame in self.log.frames[STAGE, partition]:
            if frame.kind is FrameKind.OPEN:
                table.open(frame.origin, acknowledged=frame.previous, now_ns=frame.ingest_ns)
            elif frame.kind is FrameKind.DATA:
                verdict = table.take(
                    frame.origin, sequence=frame.sequence, previous=frame.previous, now_ns=frame.ingest_ns
                )
                found += [frame] if verdict is Verdict.TAKE else []
        return found

    def justified_ns(self) -> int:
        """The watermark of the client's frames up to the first that is not in the log, in some partition of its own."""
        there = [{frame.sequence for frame in self.taken(partition)} for partition in EVERY]
        newest = 0
        for sequence, values in enumerate(self.frames, 1):
            where = {append.partition for append in self._records(sequence)}
            if not all(sequence in there[partition] for partition in where):
                break
            newest = max([newest, *(at for _, at in values)])
        return newest - OUT_OF_ORDER_US * US

    def _records(self, sequence: int) -> list[Append]:
        alone = Session(self.route, Hello(source="orders", stream="feed"), [-1] * PARTITIONS)
        appends = alone.take(readings_frame(sequence, *self.frames[sequence - 1]), 0, NOW_NS).appends
        return [append for append in appends if not append.opens]

    def known_ns(self, partition: int) -> int:
        """What was reported to the partition, by frames that count and by TICKs."""
        ticks = [ns for frame in self.log.frames[STAGE, partition] for ns in frame.watermarks.values()]
        return max([0, *ticks, *(frame.watermark_ns for frame in self.taken(partition))])

    def check_two_ticks(self) -> None:
        """Where nothing is sent meanwhile, and no TICK is lost, all partitions know after two ticks."""
        if self.sessions:
            newest = self.sessions[-1]
            durable_ns = newest.durable_ns()
            for _ in range(2):
                self.now_s += TICK_S
                for sender in (0, 1):
                    self.tick(sender, lost=999)
            assert all(self.known_ns(partition) >= durable_ns for partition in EVERY)


STEPS = [
    "send",
    "send",
    "send",
    "arrive",
    "arrive",
    "arrive",
    "lose",
    "receipt",
    "cut",
    "tick",
    "tick",
    "two ticks",
]
_reading = st.tuples(
    st.sampled_from([sensor_of(each) for each in EVERY]), st.integers(1, 20).map(lambda us: us * US)
)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.lists(_reading, min_size=1, max_size=3), min_size=1, max_size=FRAMES),
    st.booleans(),
    st.data(),
)
def test_no_partition_is_reported_more_than_the_log_holds_and_all_get_it_within_two_ticks(
    frames: Frames,
    keyed: bool,  # noqa: FBT001 - an example's
    data: st.DataObject,
) -> None:
    world = World(frames, keyed)
    for _ in range(data.draw(st.integers(0, 50))):
        step = data.draw(st.sampled_from(STEPS))
        world.now_s += data.draw(st.sampled_from([0.0, TICK_S / 4, TICK_S]))
        sender = data.draw(st.integers(0, 1))
        in_flight = [
            (each, where) for each in world.sessions for where, waiting in each.in_flight.items() if waiting
        ]
        if step == "send":
            world.send(sender)
        elif step == "receipt":
            world.receipt()
        elif step == "cut" and world.session is not None:
            # Its sender notices now, or later than all of this.
            if data.draw(st.booleans()):
                world.session.ticker.close(world.session.progress)
            world.session = None
        elif step == "tick":
            world.tick(sender, lost=data.draw(st.sampled_from([0, 1, 2, 999])))
        elif step == "two ticks":
            world.check_two_ticks()
        elif step in ("arrive", "lose") and in_flight:
            running, where = data.draw(st.sampled_from(in_flight))
            for _ in range(min(len(running.in_flight[where]), data.draw(st.integers(1, 4)))):
                running.arrive(where, world.log, lost=step == "lose")
    for running in world.sessions:
        running.arrive_all(world.log)
    world.check_two_ticks()


def test_the_model_finds_a_ticker_that_reports_what_is_not_in_the_log_yet() -> None:
    """So that the model above can fail: what is reported here is the newest frame, whatever has become of it."""
    world = World([[(sensor_of(0), 5 * US)], [(sensor_of(1), 9 * US)]], keyed=True)
    world.send(0)
    world.send(0)
    (running,) = world.sessions
    running.arrive((STAGE, 0), world.log)
    running.ledger.watermark_ns = 9 * US
    with pytest.raises(AssertionError):
        world.tick(0, lost=999)
