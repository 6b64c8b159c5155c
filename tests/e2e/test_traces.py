"""One trace of a sampled frame over all services, under both schedules; and what is left where nothing is measured."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from bettong.client.sender import Sender
from bettong.client.subscriber import Subscriber
from bettong.config.processor import Schedule
from bettong.identifiers import Origin, SequenceNumber
from bettong.traces import FrameSampling
from tests.e2e.conftest import PARTITIONS, ROOT, RunningSuite, StartSuite
from tests.servers.collector import CollectedSpan, Collector, collecting
from tests.waiting import eventually

APPLICATION = "examples/word_count.py"
LINES = (ROOT / "LICENSE").read_text().splitlines()
FRAMES, FRAME_LINES = 12, 8
RATIO = 0.5
# What a subscriber reads: some of them are of sampled frames.
RESULTS = 20
SETTINGS = {"spark_master": "local[2]"}
SERVICES = {
    "send": "bettong-client",
    "accept": "bettong-sender",
    "append": "bettong-sender",
    "fold": "bettong-processor",
    "deliver": "bettong-receiver",
}
# What may stand above each kind of span; two stages, one behind the other.
ABOVE = {"accept": {"send"}, "append": {"accept"}, "fold": {"append", "fold"}, "deliver": {"fold"}}


@pytest.mark.timeout(900)
def test_a_sampled_frame_has_one_trace_from_its_client_to_its_sink_and_nothing_measured_has_none(
    start_suite: StartSuite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    with collecting() as (collector, endpoint):
        monkeypatch.setenv("BETTONG_CLIENT_TRACE_ENDPOINT", endpoint)
        monkeypatch.setenv("BETTONG_CLIENT_TRACE_RATIO", str(RATIO))
        traced = {**SETTINGS, "trace_endpoint": endpoint, "trace_ratio": str(RATIO)}
        for schedule in (Schedule.RESIDENT, Schedule.MICRO_BATCH):
            running = start_suite(APPLICATION, schedule=schedule, keep=kept, settings=traced)
            stream = f"feed-{schedule.value}"
            with Subscriber(running.suite.record.receiver, "counts") as subscriber:
                send(running, stream)
                for _ in range(RESULTS):
                    next(subscriber)
            running.settle()
            in_whole_traces(collector, stream)
            running.suite.stop()
        monkeypatch.delenv("BETTONG_CLIENT_TRACE_ENDPOINT")
        collector.spans.clear()
        running = start_suite(APPLICATION, keep=kept, settings={**traced, "measures": "off"})
        send(running, "feed-off")
        running.settle()
        nothing_is_measured(running)
        running.suite.stop()
        assert not collector.spans
    words = Counter(word for line in LINES[: FRAMES * FRAME_LINES] for word in line.lower().split())
    assert len(running.all_bytes_of("counts").splitlines()) == 3 * words.total(), "each once, all the same"


def send(running: RunningSuite, stream: str) -> None:
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
