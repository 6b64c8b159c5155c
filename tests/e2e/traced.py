"""Word count traced: one trace of a sampled frame over all services; and what is left where nothing is measured."""

from __future__ import annotations

from collections import Counter, defaultdict

from bettong.client.sender import Sender
from bettong.client.subscriber import Subscriber
from bettong.identifiers import Origin, SequenceNumber
from bettong.traces import FrameSampling
from tests.e2e.conftest import PARTITIONS, ROOT, RunningSuite
from tests.servers.collector import CollectedSpan, Collector
from tests.waiting import eventually

FRAMES, FRAME_LINES = 12, 8
# What is sent of each stream.
LINES = (ROOT / "LICENSE").read_text().splitlines()[: FRAMES * FRAME_LINES]
RATIO = 0.5
# What a subscriber reads: some of them are of sampled frames.
RESULTS = 20
SERVICES = {
    "send": "bettong-client",
    "accept": "bettong-sender",
    "append": "bettong-sender",
    "fold": "bettong-processor",
    "deliver": "bettong-receiver",
}
# What may stand above each kind of span; two stages, one behind the other.
ABOVE = {"accept": {"send"}, "append": {"accept"}, "fold": {"append", "fold"}, "deliver": {"fold"}}


def feed_sampled(running: RunningSuite, collector: Collector, stream: str) -> None:
    """Sends the frames of a stream that a subscriber reads, too, and waits for all their spans."""
    with Subscriber(running.suite.record.receiver, "counts") as subscriber:
        feed(running, stream)
        for _ in range(RESULTS):
            next(subscriber)
    running.settle()
    in_whole_traces(collector, stream)


def feed(running: RunningSuite, stream: str) -> None:
    """Sends the frames of a stream."""
    with Sender(running.sender, "lines", stream) as sender:
        for each in range(FRAMES):
            rows = LINES[each * FRAME_LINES : (each + 1) * FRAME_LINES]
            sender.send_rows([line.encode() for line in rows], sent_ns=each + 1)


def in_whole_traces(collector: Collector, stream: str) -> None:
    """Each sampled frame is a tree of spans, none of which lacks the one above it."""
    origin, sampling = Origin(f"lines/{stream}"), FrameSampling(RATIO)
    sampled = {
        trace_id: sequence
        for sequence in range(1, FRAMES + 1)
        if (trace_id := sampling.trace_id(origin, SequenceNumber(sequence), sequence)) is not None
    }
    assert 0 < len(sampled) < FRAMES

    def traces() -> dict[bytes, list[CollectedSpan]]:
        found: dict[bytes, list[CollectedSpan]] = defaultdict(list)
        for each in list(collector.spans):
            if each.span.trace_id in sampled:
                found[each.span.trace_id].append(each)
        return found

    def complete() -> bool:
        found = traces()
        return found.keys() == sampled.keys() and all(is_whole(spans) for spans in found.values())

    eventually(complete, seconds=60, what="all spans of all sampled frames have come")
    for trace_id, spans in traces().items():
        by_id = {each.span.span_id: each for each in spans}
        (root,) = [each for each in spans if not each.span.parent_span_id]
        assert kind(root) == "send"
        assert root.attributes["bettong.sequence"] == sampled[trace_id]
        for each in spans:
            assert each.resource["service.name"] == SERVICES[kind(each)]
            assert each.span.start_time_unix_nano <= each.span.end_time_unix_nano
            if each is not root:
                above = by_id[each.span.parent_span_id]
                assert kind(above) in ABOVE[kind(each)]
                assert above.span.start_time_unix_nano <= each.span.start_time_unix_nano
        stages = {each.attributes["bettong.stage"] for each in spans if kind(each) == "fold"}
        assert len(stages) == 2
    others = {
        each.span.trace_id
        for each in collector.spans
        if each.attributes.get("bettong.origin") == origin and each.span.trace_id not in sampled
    }
    assert not others, "frames that are not sampled have no spans"
    destinations = {each.attributes.get("bettong.destination", "") for each in collector.spans}
    assert "files and Redis" in destinations
    assert any(each.startswith("subscriber 1 at ") for each in destinations)


def is_whole(spans: list[CollectedSpan]) -> bool:
    """Every record that a sender or a worker has put out was folded or delivered."""
    ends = Counter(each.span.parent_span_id for each in spans if kind(each) in {"fold", "deliver"})
    appended = all(ends[each.span.span_id] for each in spans if kind(each) == "append")
    folded = all(
        ends[each.span.span_id] >= each.attributes["bettong.records"]
        for each in spans
        if kind(each) == "fold"
    )
    kinds = {kind(each) for each in spans}
    return appended and folded and kinds == SERVICES.keys()


def kind(of: CollectedSpan) -> str:
    return of.span.name.split(" ")[0]


def nothing_is_measured(running: RunningSuite) -> None:
    """What is counted is there, and nothing of where the time went."""
    live, partitions = running.metrics.live(), running.metrics.partitions()
    receiver = live["receiver"]
    assert int(receiver["messages/counts"]) > 0
    assert "latency/counts" in receiver
    assert not [name for name in receiver if name.startswith("latency_part")]
    assert len(partitions) == 2 * PARTITIONS
    for record in partitions.values():
        assert not record.get("times")
        assert not record.get("hot_keys")
        assert record["accounts"]
