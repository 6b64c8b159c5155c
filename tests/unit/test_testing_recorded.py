"""`bettong.testing.case_from`: a recorded log as a case."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bettong.application.plan import plan
from bettong.edges.kafka_log import Record
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, Repartition, encode, repartition_record
from bettong.identifiers import Origin, SequenceNumber
from bettong.ingest.session import Session, SourceRoute
from bettong.testing import (
    CaseError,
    LoggedRecord,
    assert_alike,
    case_from,
    check,
    frame,
    read_log,
    run,
    watermark,
    write_log,
)
from bettong.testing.inputs import ClientFrame, WatermarkInput
from bettong.topics import stage_topic
from bettong.v1.ingest_pb2 import Hello, IngestFrame
from tests.samples.clicks import Click, Hour, counting_app, hours_app

PARTITIONS = 3
BEGIN = datetime(2026, 11, 24, 2, tzinfo=UTC)
BEGIN_NS = int(BEGIN.timestamp()) * 10**9
HOUR_NS, S_NS = 3600 * 10**9, 10**9


def recorded(app: object, frames: list[tuple[float, str, list[Click]]]) -> list[Record]:
    """What a sender would have written: seconds behind BEGIN, the client, and the messages of each frame."""
    planned = plan(app)  # type: ignore[arg-type]
    (source,), stage = planned.sources, planned.stages[0]
    topic = stage_topic(planned.application, stage.name)
    route = SourceRoute(
        source,
        topic,
        "dead",
        PARTITIONS,
        2**20,
        needs_time=stage.needs_time,
        judges_lateness=stage.judges_lateness,
    )
    sessions: dict[str, Session] = {}
    values: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    for number, (at_s, client, messages) in enumerate(frames, 1):
        now_ns = BEGIN_NS + int(at_s * S_NS)
        if client not in sessions:
            sessions[client] = Session(route, Hello(source=source.name, stream=client), [-1] * PARTITIONS)
            for append in sessions[client].open(0, now_ns, SequenceNumber(0)).appends:
                values[append.partition].append(append.value)
        columns = Columns.of_messages(source.schema, messages).payload()
        taken = sessions[client].take(IngestFrame(sequence=number, columns=columns), 0, now_ns)
        for append in taken.appends:
            values[append.partition] += [append.value] * (2 if number == 2 else 1)
    return [
        Record(topic, partition, offset, value)
        for partition, each in values.items()
        for offset, value in enumerate(each)
    ]


def test_a_log_gives_back_the_messages_their_clients_frames_and_times() -> None:
    log = recorded(
        counting_app, [(0, "x", [Click("a"), Click("b")]), (2, "y", [Click("a")]), (3, "x", [Click("c")])]
    )
    case = case_from(counting_app, log)
    sent = [
        (step.client, message.user)
        for step in case
        if isinstance(step, ClientFrame)
        for message in step.messages
    ]
    assert sorted(sent) == [("x", "a"), ("x", "b"), ("x", "c"), ("y", "a")]
    assert run(counting_app, case).states["counted"] == {
        "a": {"total": 2},
        "b": {"total": 1},
        "c": {"total": 1},
    }
    check(counting_app, case)


def test_one_key_of_a_span() -> None:
    log = recorded(counting_app, [(second, "x", [Click("a"), Click("b", at=second)]) for second in range(10)])
    case = case_from(
        counting_app, log, key="b", span=(BEGIN + timedelta(seconds=3), BEGIN + timedelta(seconds=5))
    )
    sent = [message for step in case if isinstance(step, ClientFrame) for message in step.messages]
    assert sent == [Click("b", at=3), Click("b", at=4)]
    assert case_from(counting_app, log, span=(None, BEGIN + timedelta(seconds=1)))


def test_what_was_late_is_late_again_though_the_messages_that_made_it_so_are_left_out() -> None:
    at_ns = BEGIN_NS - BEGIN_NS % HOUR_NS
    log = recorded(
        hours_app,
        [
            (0, "x", [Click("a", "p", at_ns)]),
            (100, "x", [Click("a", "q", at_ns + 3670 * S_NS), Click("b", "p", at_ns + 1)]),
            (101, "x", [Click("c", "p", at_ns + 2)]),
        ],
    )
    case = case_from(hours_app, log, key="p")
    assert any(isinstance(step, WatermarkInput) for step in case)
    outcome = run(hours_app, case, until=at_ns + 5 * HOUR_NS)
    assert outcome.outputs["late"] == [Click("b", "p", at_ns + 1), Click("c", "p", at_ns + 2)]
    assert outcome.outputs["hours"] == [Hour("p", at_ns, 1)]


def test_a_log_is_a_file_of_lines(tmp_path: Path) -> None:
    log = recorded(counting_app, [(0, "x", [Click("a")])])
    file = tmp_path / "log.jsonl"
    file.write_text("".join(write_log(log)))
    found = read_log(file)
    assert [(each.topic, each.partition, each.offset, each.value) for each in found] == [
        (each.topic, each.partition, each.offset, each.value) for each in log
    ]
    assert isinstance(found[0], LoggedRecord)
    assert_alike(
        run(counting_app, case_from(counting_app, found)), run(counting_app, case_from(counting_app, log))
    )
    file.write_text(file.read_text() + "{}\n")
    with pytest.raises(CaseError, match=rf"log.jsonl, line {len(found) + 1}: not a record"):
        read_log(file)


def test_what_came_again_over_another_number_of_partitions_counts_once() -> None:
    """Sent again it is divided anew, and so is what a sender was cut off with while the number was changed."""
    planned = plan(counting_app)
    stage, (source,) = planned.stages[0].name, planned.sources
    topic = stage_topic(planned.application, stage)

    def data(sequence: int, user: str, generation: int) -> bytes:
        return encode(
            Frame(
                origin=Origin(f"{source.name}/x"),
                sequence=SequenceNumber(sequence),
                previous=SequenceNumber(sequence - 1),
                count=1,
                schema=source.schema.fingerprint,
                ingest_ns=BEGIN_NS + generation * S_NS,
                columns=Columns.of_messages(source.schema, [Click(user)]).payload(),
                generation=generation,
            )
        )

    mark = repartition_record(stage, Repartition(1, 2))
    logs = [
        [data(1, "a", 0), mark, data(3, "c", 1)],
        # The first frame again, one that was divided before, and it anew.
        [mark, mark, data(1, "a", 1), data(2, "b", 0), data(2, "b", 1)],
    ]
    log = [
        Record(topic, partition, offset, value)
        for partition, values in enumerate(logs)
        for offset, value in enumerate(values)
    ]
    case = case_from(counting_app, log)
    sent = [message.user for step in case if isinstance(step, ClientFrame) for message in step.messages]
    assert sorted(sent) == ["a", "b", "c"]


def test_a_log_that_does_not_fit_says_so() -> None:
    log = recorded(counting_app, [(0, "x", [Click("a")])])
    with pytest.raises(CaseError, match="no message of key 'z'"):
        case_from(counting_app, log, key="z")
    assert frame("clicks", Click("a"), client="x") in case_from(counting_app, log)
    assert watermark(5) not in case_from(counting_app, log)
