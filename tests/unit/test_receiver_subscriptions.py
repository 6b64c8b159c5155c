"""Where a subscription starts, and the responses that it sends."""

from collections.abc import Callable
from typing import cast

import pytest

from bettong.edges.kafka_log import LogReader, Record
from bettong.topics import DEAD_LETTERS
from bettong.v1 import subscribe_pb2 as pb
from bettong_receiver.formats import formats
from bettong_receiver.progress import DeliveryProgress
from bettong_receiver.subscriptions import (
    LogFacts,
    RefusedSubscription,
    Subscription,
    SubscriptionRefusal,
    starts,
)
from tests.samples.result_frames import planned, rows, tick

FORMATS = formats(planned())
FACTS = LogFacts(beginnings={0: 10, 1: 0}, ends={0: 50, 1: 0})
NEWEST = {0: DeliveryProgress(offset=48), 1: DeliveryProgress(offset=0)}


def ask(
    *positions: pb.Position, sink: str = "raw", start: pb.Start.ValueType = pb.START_UNSPECIFIED
) -> dict[int, DeliveryProgress]:
    request = pb.SubscribeRequest(sink=sink, positions=positions, start=start)
    return starts(request, facts=FACTS, newest=NEWEST)


def test_without_positions_it_starts_with_the_oldest_result() -> None:
    found = ask()
    assert {partition: each.offset for partition, each in found.items()} == {0: 10, 1: 0}
    assert (found[0].adopts, found[1].adopts) == (True, False)


def test_latest_starts_at_the_receivers_own_progress() -> None:
    assert ask(start=pb.START_LATEST) == NEWEST


def test_a_position_resumes_with_its_delivery_table() -> None:
    found = ask(pb.Position(partition=0, offset=20, highest={"raw/notes-in/0": 7}), start=pb.START_LATEST)
    assert found[0].offset == 20
    assert found[0].table.highest == {"raw/notes-in/0": 7}


def test_partitions_that_were_added_since_are_read_from_their_beginning() -> None:
    facts = LogFacts(beginnings={0: 10, 1: 0, 2: 0, 3: 7}, ends={0: 50, 1: 0, 2: 30, 3: 9})
    newest = {partition: DeliveryProgress(offset=end) for partition, end in facts.ends.items()}
    request = pb.SubscribeRequest(
        sink="raw", positions=[pb.Position(partition=1)], start=pb.Start.START_LATEST
    )
    found = starts(request, facts=facts, newest=newest)
    # Its first opening was interrupted before partition 0; partitions 2 and 3 did not exist.
    assert {partition: each.offset for partition, each in found.items()} == {0: 50, 1: 0, 2: 0, 3: 7}
    assert found[3].adopts


@pytest.mark.parametrize("cut", range(1, 5))
@pytest.mark.parametrize("cut_again", range(9))
def test_an_opening_that_is_interrupted_anywhere_loses_and_repeats_no_result(
    cut: int, cut_again: int
) -> None:
    def opened(partitions: int, known: set[int], cut: int) -> set[int]:
        """What a subscriber knows after so many responses to its request. All results lie behind where it began."""
        facts = LogFacts(dict.fromkeys(range(partitions), 0), dict.fromkeys(range(partitions), 5))
        newest = {each: DeliveryProgress(offset=5 if each < 4 else 0) for each in range(partitions)}
        positions = [pb.Position(partition=each, offset=5 if each < 4 else 0) for each in sorted(known)]
        request = pb.SubscribeRequest(sink="raw", positions=positions, start=pb.Start.START_LATEST)
        # The receiver has already delivered from the partitions that were added.
        if known:
            newest.update({each: DeliveryProgress(offset=5) for each in range(4, partitions)})
        found = starts(request, facts=facts, newest=newest)
        assert {each: at.offset for each, at in found.items()} == {
            each: 5 if each < 4 else 0 for each in range(partitions)
        }
        reader = cast("Callable[..., LogReader]", lambda _starts: None)
        opening = Subscription(FORMATS["raw"], found, reader, ahead_bytes_max=1000).opening()
        return known | {each.partition for each in opening[:cut]}

    known = opened(4, set(), cut)
    known = opened(8, known, cut_again)
    assert opened(8, known, 8) == set(range(8))


@pytest.mark.parametrize(
    ("positions", "sink", "fault"),
    [
        ([pb.Position(partition=0, offset=20)] * 2, "raw", "two positions for partition 0"),
        ([pb.Position(partition=2, offset=20)], "raw", "has partitions 0 to 1"),
        (
            [pb.Position(partition=0, offset=20, highest={"notes/notes-in/0": 1})],
            "raw",
            "not one of sink 'raw'",
        ),
        (
            [pb.Position(partition=0, offset=20, highest={"raw/notes-in/0": 1})],
            DEAD_LETTERS,
            "not one of sink",
        ),
        ([pb.Position(partition=0, offset=20, highest={"nonsense": 1})], "raw", "are raw/STAGE/0"),
        ([pb.Position(partition=0, offset=20, highest={"raw/notes-in/1": 1})], "raw", "are raw/STAGE/0"),
        ([pb.Position(partition=0, offset=20, highest={"orders/feed": 1})], DEAD_LETTERS, "not one of sink"),
        ([pb.Position(partition=0, offset=20, highest={f"raw/{'x' * 1024}/0": 1})], "raw", "not one of sink"),
    ],
)
def test_positions_that_are_malformed_or_of_another_sink_are_refused(
    positions: list[pb.Position], sink: str, fault: str
) -> None:
    with pytest.raises(RefusedSubscription, match=fault) as caught:
        ask(*positions, sink=sink)
    assert caught.value.refusal is SubscriptionRefusal.INVALID


def test_an_unknown_start_is_refused() -> None:
    with pytest.raises(RefusedSubscription, match="start 9 is unknown"):
        ask(start=cast("pb.Start.ValueType", 9))


def test_a_position_of_the_dead_letters_names_stages_and_destinations() -> None:
    highest = {"dead-letters/check/0": 3, "dead-letters/raw.destination/0": 1}
    assert ask(pb.Position(partition=0, offset=20, highest=highest), sink=DEAD_LETTERS)[0].offset == 20


def test_a_position_with_more_origins_than_any_application_has_is_refused() -> None:
    highest = {f"raw/s{number}/0": 1 for number in range(1025)}
    with pytest.raises(RefusedSubscription, match="1025 origins, a position has at most 1024") as caught:
        ask(pb.Position(partition=0, offset=20, highest=highest))
    assert caught.value.refusal is SubscriptionRefusal.INVALID
    del highest["raw/s0/0"]
    assert ask(pb.Position(partition=0, offset=20, highest=highest))[0].offset == 20


@pytest.mark.parametrize("offset", [0, 9, 51, 2**63])
def test_a_position_outside_the_log_is_out_of_range(offset: int) -> None:
    with pytest.raises(
        RefusedSubscription, match=rf"offset {offset} .* which has 10 to 50; subscribe without"
    ) as caught:
        ask(pb.Position(partition=0, offset=offset))
    assert caught.value.refusal is SubscriptionRefusal.OUT_OF_RANGE


@pytest.fixture
def subscription() -> Subscription:
    reader = cast("Callable[..., LogReader]", lambda _starts: None)
    return Subscription(
        FORMATS["raw"], {0: DeliveryProgress(), 1: DeliveryProgress()}, reader, ahead_bytes_max=1000
    )


def record(offset: int, sequence: int, previous: int, partition: int = 0) -> Record:
    value = rows(
        [b"a", b"b"], origin=f"raw/notes-in/{partition}", sequence=sequence, previous=previous, sent_ns=5
    )
    return Record("app.sink.raw", partition, offset, value)


def test_it_opens_with_the_position_of_every_partition(subscription: Subscription) -> None:
    found = subscription.opening()
    assert [(each.partition, each.offset) for each in found] == [(0, 0), (1, 0)]
    opening = [pb.SubscribeResponse.FromString(each.data) for each in found]
    assert [each.position.partition for each in opening] == [0, 1]
    assert not any(each.messages for each in opening)


def test_a_frame_is_sent_with_the_position_after_it(subscription: Subscription) -> None:
    (response,) = subscription.responses([record(0, 4, 0)])
    assert response == pb.SubscribeResponse(
        messages=[b"a", b"b"],
        position=pb.Position(partition=0, offset=1, highest={"raw/notes-in/0": 4}),
        sent_ns=5,
    )


def test_skipped_frames_only_advance_the_position(subscription: Subscription) -> None:
    records = [
        record(0, 4, 0),
        record(1, 4, 0),
        Record("app.sink.raw", 0, 2, b"garbage"),
        Record("app.sink.raw", 1, 0, tick("raw")),
        record(1, 4, 0, partition=1),
    ]
    responses = list(subscription.responses(records))
    assert [(len(each.messages), each.position.partition, each.position.offset) for each in responses] == [
        (2, 0, 1),
        (2, 1, 2),
        (0, 0, 3),
    ]


def test_responses_are_built_on_demand() -> None:
    """Responses may be several times the size of their records, so they are not built all at once."""
    large = [
        Record(
            "app.sink.raw", 0, n, rows([bytes(200_000)], origin="raw/notes-in/0", sequence=n + 1, previous=n)
        )
        for n in range(5)
    ]
    rounds = [large]

    class Reader:
        def poll(self, timeout_ms: int, records_max: int) -> list[Record]:
            del timeout_ms, records_max
            return rounds.pop() if rounds else []

    reader = cast("Callable[..., LogReader]", lambda _starts: Reader())
    one = Subscription(
        FORMATS["raw"], {0: DeliveryProgress(), 1: DeliveryProgress()}, reader, ahead_bytes_max=1000
    )
    assert one.held == 3000
    assert [[each.offset for each in one.round()] for _ in range(4)] == [[1, 2], [3, 4], [5], []]
    assert one.held == 3 * max(len(each.value) for each in large)
