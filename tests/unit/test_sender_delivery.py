"""The whole way from a client that loses its connections to a consumer of the log, by a model.

A client sends frames through sessions of several senders. What a session has handed to the log arrives later, in any
mixture with other sessions', in order for each partition; the end of it, or a piece of it, may be lost. A session
acknowledges what all has arrived of; the client comes back with the last receipt that reached it and resends.
In the end each message lies in its partition once, in order, for whoever applies the delivery rule.
"""

from collections import deque
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.delivery import DeliveryTable, Verdict
from bettong.frames.frame import Frame, FrameKind
from bettong.identifiers import SequenceNumber
from bettong.ingest.session import Append, Session
from bettong.routing import partition_of
from bettong.v1.ingest_pb2 import Hello, Receipt
from bettong_sender.ledger import Entry, Ledger
from tests.samples.sender import (
    PARTITIONS,
    MemoryLog,
    numbers_in,
    orders,
    refused_in,
    route,
    rows_frame,
    source,
)

WINDOW = 5
FRAMES = 8
STAGE = "shop.stage.orders"

WITH_KEY, WITHOUT_KEY = route(), route(source(None))


@dataclass
class Client:
    """What a client keeps. Frame n holds the orders 10 n to 10 n + 5; every third has a row that cannot be read."""

    acknowledged: int = 0
    session: "Running | None" = None


@dataclass
class Running:
    """A session in some sender, alive or not: what is under way to the log goes on."""

    session: Session
    ledger: Ledger
    next_frame: int
    in_flight: dict[tuple[str, int], deque[tuple[Append, Entry]]] = field(default_factory=dict)

    def hand_over(self, appends: list[Append], entry: Entry) -> None:
        entry.appends = len(appends)
        for each in appends:
            self.in_flight.setdefault((each.topic, each.partition), deque()).append((each, entry))


class World:
    """A client, the sessions that it has had, and the log."""

    def __init__(self, *, keyed: bool) -> None:
        self.route = WITH_KEY if keyed else WITHOUT_KEY
        self.log = MemoryLog()
        self.client = Client()
        self.sessions: list[Running] = []
        self.now_ns = 0

    def connect(self) -> Running:
        """A session starts; the one before lives on in its sender."""
        hello = Hello(source="orders", stream="feed", acknowledged=self.client.acknowledged)
        session = Session(self.route, hello, [-1] * PARTITIONS)
        ledger = Ledger(session.origin, window=WINDOW)
        running = Running(session, ledger, hello.acknowledged + 1)
        running.hand_over(
            session.open(self.now_ns, self.now_ns, SequenceNumber(hello.acknowledged)).appends,
            ledger.opening(SequenceNumber(hello.acknowledged)),
        )
        ledger.grant(full=False)
        self.sessions.append(running)
        self.client.session = running
        return running

    def send(self) -> None:
        """The client sends its next frame, when it has a session and a credit."""
        running = self.client.session or self.connect()
        if running.next_frame > FRAMES or running.next_frame > self.client.acknowledged + WINDOW:
            return
        number = running.next_frame
        running.next_frame += 1
        spoilt = [b"unreadable %d" % number] if number % 3 == 0 else []
        frame = rows_frame(number, orders(range(10 * number, 10 * number + 6)), spoilt=spoilt)
        entry = running.ledger.spend(SequenceNumber(number), 1)
        taken = running.session.take(frame, self.now_ns, self.now_ns)
        entry.dead_letters = len(taken.refused)
        running.hand_over(taken.appends, entry)

    def arrive(self, running: Running, partition: tuple[str, int], *, lost: bool) -> None:
        """The next record of a session reaches its partition, or is lost on the way."""
        append, entry = running.in_flight[partition].popleft()
        entry.answered += 1
        if lost:
            entry.failed = True
            running.session.lost(append.numbered_in)
        else:
            self.log.extend([append])
            offset = len(self.log.frames[append.topic, append.partition]) - 1
            running.session.answered(append.numbered_in, offset, opens=append.opens)

    def receipt(self, running: Running) -> Receipt | None:
        """The client reads a receipt, if the session is its present one."""
        receipt = running.ledger.receipt(full=False)
        if receipt is not None and running is self.client.session:
            self.client.acknowledged = receipt.acknowledged
        return receipt

    def finish(self) -> None:
        """No more accidents: everything arrives, and the client sends what is left."""
        for running in self.sessions:
            self._arrive_all(running)
        while self.client.acknowledged < FRAMES:
            running = self.connect()
            for _ in range(WINDOW):
                self.send()
            self._arrive_all(running)
            assert self.receipt(running) is not None

    def _arrive_all(self, running: Running) -> None:
        for partition, queue in running.in_flight.items():
            while queue:
                self.arrive(running, partition, lost=False)


def judged(world: World, topic: str, partition: int) -> list[tuple[Verdict, Frame]]:
    """What a consumer of the partition says of each frame that is no OPEN."""
    table, found = DeliveryTable(), []
    for frame in world.log.frames[topic, partition]:
        if frame.kind is FrameKind.OPEN:
            table.open(frame.origin, acknowledged=frame.previous, now_ns=frame.ingest_ns)
        else:
            verdict = table.take(
                frame.origin, sequence=frame.sequence, previous=frame.previous, now_ns=frame.ingest_ns
            )
            found.append((verdict, frame))
    return found


def taken(world: World, partition: int) -> list[Frame]:
    """The frames that the consumer takes."""
    return [frame for verdict, frame in judged(world, STAGE, partition) if verdict is Verdict.TAKE]


def delivered(world: World, partition: int) -> list[int]:
    """The numbers of the orders in them."""
    return [number for frame in taken(world, partition) for number in numbers_in(world.route.source, frame)]


def run(world: World, data: st.DataObject) -> None:
    """Any number of accidents."""
    for _ in range(data.draw(st.integers(0, 60))):
        world.now_ns += 1
        step = data.draw(
            st.sampled_from(["send", "send", "arrive", "arrive", "arrive", "receipt", "cut", "lose"])
        )
        in_flight = [
            (s, partition) for s in world.sessions for partition, queue in s.in_flight.items() if queue
        ]
        if step == "send":
            world.send()
        elif step == "cut":
            world.client.session = None
        elif step == "receipt" and world.client.session is not None:
            world.receipt(world.client.session)
        elif step in ("arrive", "lose") and in_flight:
            running, partition = data.draw(st.sampled_from(in_flight))
            for _ in range(min(len(running.in_flight[partition]), data.draw(st.integers(1, 4)))):
                world.arrive(running, partition, lost=step == "lose")


@settings(deadline=None, max_examples=100)
@given(st.booleans(), st.data())
def test_whatever_is_lost_repeated_or_late_each_message_is_delivered_once_and_in_order(
    keyed: bool,  # noqa: FBT001 - an example's
    data: st.DataObject,
) -> None:
    world = World(keyed=keyed)
    run(world, data)
    world.finish()
    every = [each for n in range(1, FRAMES + 1) for each in orders(range(10 * n, 10 * n + 6))]
    found = [delivered(world, partition) for partition in range(PARTITIONS)]
    if keyed:
        assert found == [
            [each.number for each in every if partition_of(each.symbol, PARTITIONS) == partition]
            for partition in range(PARTITIONS)
        ]
    else:
        assert sorted(number for numbers in found for number in numbers) == [each.number for each in every]
        assert all(numbers == sorted(numbers) for numbers in found)
    refused = [
        [each.message for frame in taken(world, partition) for each in refused_in(frame)]
        for partition in range(PARTITIONS)
    ]
    assert [each for each in refused if each] == [
        [b"unreadable %d" % n for n in range(1, FRAMES + 1) if n % 3 == 0]
    ], "in one partition, in their order"


def test_the_model_makes_repetitions_and_gaps() -> None:
    """A run by hand into the accidents that the test above is about."""
    world = World(keyed=True)
    first = world.connect()
    for _ in range(3):
        world.send()
    lossy, sound = list(first.in_flight)[:2]
    for _ in first.in_flight[sound].copy():
        world.arrive(first, sound, lost=False)
    world.arrive(first, lossy, lost=False)
    world.arrive(first, lossy, lost=True)
    world.finish()
    assert Verdict.DUPLICATE in {verdict for verdict, _ in judged(world, *sound)}
    assert Verdict.GAP in {verdict for verdict, _ in judged(world, *lossy)}
    assert not first.ledger.is_complete
