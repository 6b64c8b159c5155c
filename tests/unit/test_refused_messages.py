"""Whatever a client may send becomes records that the log takes, and each refused message a dead letter."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bettong import Application, each
from bettong.application.key import Key
from bettong.application.plan import plan
from bettong.edges.kafka_log.sizes import value_bytes_max
from bettong.errors import FrameError
from bettong.frames.columns import Columns
from bettong.frames.frame import decode
from bettong.frames.refused import NO_ROOM, Refused, pack, packed_bytes_max, unpack
from bettong.ingest.session import Append, Session, SourceRoute
from bettong.schema.schema import schema_of
from bettong.v1.frame_pb2 import DeadLetter, Frame, RefusedMessages, Rows
from bettong.v1.ingest_pb2 import Hello, IngestFrame
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program

# The least that the settings take.
FRAME_BYTES_MAX = 16 * 1024


@dataclass
class Word:
    """A message of any length."""

    text: str


@dataclass
class Flag:
    """The smallest message: one byte as a column."""

    value: bool


def read(row: bytes) -> Word:
    """Refuses what begins with `!`, for a reason that quotes it: each its own, of any length."""
    if row.startswith(b"!"):
        raise ValueError(row.decode(errors="surrogateescape"))
    return Word(row.decode("latin-1"))


def no_key(_message: object) -> str:
    """A key function that takes nothing."""
    raise KeyError("none")


def parts(
    key: Key | None = "text", *, partitions: int = 1, schema: type = Word
) -> tuple[Session, list[PartitionWorker]]:
    """A client's session, and the workers of the stage that it feeds."""
    app = Application("app")
    decoder = each(read) if schema is Word else None
    app.source("words", schema=schema, key=key, decoder=decoder).sink("out")
    planned = plan(app)
    route = SourceRoute(
        planned.sources[0], "app.stage.words", "app.dead-letters", partitions, FRAME_BYTES_MAX
    )
    of = program(planned.stages[0], compiled=False)
    workers = [
        PartitionWorker(of, Assignment("app", number, partitions, FRAME_BYTES_MAX))
        for number in range(partitions)
    ]
    return Session(route, Hello(source="words", stream="feed"), [-1] * partitions), workers


def folded(workers: list[PartitionWorker], appends: list[Append]) -> list[OutputRecord]:
    """The output of the stage for records; the log accepts each record in and out."""
    found: list[OutputRecord] = []
    for append in appends:
        assert len(append.value) <= value_bytes_max(FRAME_BYTES_MAX)
        worker = workers[append.partition]
        found += worker.fold(worker.next_offset, append.value)
    assert all(len(record.value) <= value_bytes_max(FRAME_BYTES_MAX) for record in found)
    return found


def dead_letters_of(records: list[OutputRecord]) -> dict[int, DeadLetter]:
    """The dead letters by index; each once."""
    found: dict[int, DeadLetter] = {}
    for record in records:
        if record.topic == "app.dead-letters":
            frame = decode(record.value)
            assert frame.origin == f"dead-letters/words/{record.partition}"
            for row in frame.rows or ():
                dead_letter = DeadLetter.FromString(row)
                assert dead_letter.index not in found
                found[dead_letter.index] = dead_letter
    return found


def rows_within(rows: list[bytes]) -> list[bytes]:
    """As many of the rows as a frame takes."""
    while Rows(messages=rows).ByteSize() > FRAME_BYTES_MAX:
        del rows[max(len(rows) // 2, 1) :]
    return rows


WORDS = schema_of(Word)

contents = st.one_of(
    st.sampled_from([b"", b"!", b"a", b"!" * (FRAME_BYTES_MAX - 8), b"!\xff\xfe"]), st.binary(max_size=300)
)
# Each a number of equal messages, so that frames fill up.
mixes = st.lists(st.tuples(contents, st.integers(1, 10_000)), min_size=1, max_size=12)


# Good messages that outgrow a frame as columns are refused with their frame, with or without others beside them.
@settings(deadline=None, max_examples=25)
@given(mixes, st.booleans(), st.sampled_from([1, 4]))
def test_any_frame_within_the_limits_becomes_records_that_the_log_takes(
    mix: list[tuple[bytes, int]],
    mixed: bool,  # noqa: FBT001 - an example's
    partitions: int,
) -> None:
    session, workers = parts(partitions=partitions)
    rows = [row for row, count in mix for _ in range(count)]
    if mixed:
        rows = rows[::2] + rows[1::2]
    rows = rows_within(rows)
    good = [row for row in rows if not row.startswith(b"!")]
    assume(
        len(Columns.of_messages(WORDS, [Word(row.decode("latin-1")) for row in good]).payload())
        <= FRAME_BYTES_MAX
    )
    taken = session.take(IngestFrame(sequence=7, rows=Rows(messages=rows)), 0, 9)
    dead_letters = dead_letters_of(folded(workers, taken.appends))
    refused = {index: row for index, row in enumerate(rows) if row.startswith(b"!")}
    assert sum(worker.counters.messages for worker in workers) == len(rows) - len(refused)
    assert sum(worker.counters.dead_letters for worker in workers) == len(refused) == len(taken.refused)
    assert dead_letters.keys() == refused.keys()
    longest = (FRAME_BYTES_MAX - 1024) // 2
    for index, row in refused.items():
        dead_letter = dead_letters[index]
        assert (dead_letter.computation, dead_letter.origin, dead_letter.sequence) == (
            "words",
            "words/feed",
            7,
        )
        assert (dead_letter.message, dead_letter.truncated) == (row[:longest], len(row) > longest)
        assert dead_letter.as_received
    again = parts(partitions=partitions)[0].take(IngestFrame(sequence=7, rows=Rows(messages=rows)), 0, 9)
    assert again == taken, "a resend is the same to the byte"


def test_sixty_thousand_undecodable_messages_are_delivered_in_one_partition() -> None:
    session, workers = parts()
    rows = rows_within([b"!%d" % (number % 10) for number in range(60_000)])
    taken = session.take(IngestFrame(sequence=1, rows=Rows(messages=rows)), 0, 9)
    assert sum(not one.opens for one in taken.appends) == 1
    dead_letters = dead_letters_of(folded(workers, taken.appends))
    assert [dead_letter.message for dead_letter in dead_letters.values()] == rows
    assert {dead_letter.reason for dead_letter in dead_letters.values()} == {
        f"ValueError: !{digit}" for digit in range(10)
    }


@pytest.mark.parametrize("count", [1, 1000, FRAME_BYTES_MAX // 2])
def test_columns_without_a_key_are_delivered_however_small_their_messages_are(count: int) -> None:
    session, workers = parts(no_key, schema=Flag)
    messages = [Flag(value=bool(number % 3)) for number in range(count)]
    columns = Columns.of_messages(session._route.source.schema, messages).payload()
    taken = session.take(IngestFrame(sequence=1, columns=columns), 0, 9)
    dead_letters = dead_letters_of(folded(workers, taken.appends))
    assert len(dead_letters) == count
    assert not any(dead_letter.as_received for dead_letter in dead_letters.values())
    if count == 1:
        assert dead_letters[0].message == b'{"value":false}'
    assert dead_letters[0].truncated == (count * len(b'{"value":false}') > FRAME_BYTES_MAX)


@pytest.mark.parametrize("limit", [FRAME_BYTES_MAX, 8 * FRAME_BYTES_MAX])
def test_the_worst_that_can_be_refused_is_within_the_bound(limit: int) -> None:
    """As many as a frame of columns can hold, each with a reason of its own and more text than there is room for."""
    worst = [Refused(index, f"{index} {'ä' * 2000}", b"{" * 40, as_received=False) for index in range(limit)]
    packed = pack(worst, frame_bytes_max=limit)
    assert packed.ByteSize() <= packed_bytes_max(limit)
    found = list(unpack(packed))
    assert [each.index for each in found] == list(range(limit))
    assert {(each.reason, each.message, each.truncated) for each in found} == {(NO_ROOM, b"", True)}


def test_reasons_are_kept_as_far_as_there_is_room_and_shortened_where_there_are_many() -> None:
    few = [Refused(index, "x" * 5000, b"m", as_received=True) for index in range(1000)]
    assert {len(each.reason) for each in unpack(pack(few, frame_bytes_max=1 << 22))} == {1000}
    many = [*few, Refused(1000, "y" * 5000, b"m", as_received=True)]
    assert {len(each.reason) for each in unpack(pack(many, frame_bytes_max=1 << 22))} == {100}
    tight = [Refused(index, f"{index:0500}", b"m", as_received=True) for index in range(100)]
    reasons = [each.reason for each in unpack(pack(tight, frame_bytes_max=FRAME_BYTES_MAX))]
    kept = reasons.index(NO_ROOM)
    assert reasons == [f"{index:0500}" for index in range(kept)] + [NO_ROOM] * (100 - kept)
    assert 50 < kept < 70


@pytest.mark.parametrize(
    "packed",
    [
        RefusedMessages(skips=[0], messages=[b"a"]),
        RefusedMessages(skips=[0], reasons=[0], messages=[b"a"]),
        RefusedMessages(skips=[0], reasons=[0], kinds=[RefusedMessages.Kind()], messages=[b"a", b"b"]),
        RefusedMessages(skips=[2**32 - 1, 0], reasons=[0, 0], kinds=[RefusedMessages.Kind()]),
    ],
    ids=["reasons", "kinds", "messages", "indexes"],
)
def test_lists_that_do_not_fit_together_are_no_refused_messages(packed: RefusedMessages) -> None:
    with pytest.raises(FrameError, match="they do not fit together"):
        list(unpack(packed))


def test_dead_letters_of_a_resend_are_made_once_and_those_of_a_replay_are_the_same() -> None:
    session, workers = parts()
    frame = IngestFrame(sequence=3, rows=Rows(messages=[b"a", b"!b", b"c", b"!d"]))
    *_, append = session.take(frame, 0, 9).appends
    records = folded(workers, [append])
    assert folded(workers, [append]) == []
    assert workers[0].counters.duplicates == 1
    assert folded(parts()[1], [append]) == records
    by_topic: dict[str, int] = defaultdict(int)
    for record in records:
        by_topic[record.topic] += record.count
    assert by_topic == {"app.sink.out": 2, "app.dead-letters": 2}


def test_a_record_whose_refused_messages_are_spoilt_is_a_dead_letter_as_a_whole() -> None:
    session, workers = parts()
    *_, append = session.take(IngestFrame(sequence=1, rows=Rows(messages=[b"!b"])), 0, 9).appends
    frame = Frame.FromString(append.value)
    frame.refused.reasons[0] = 9
    (dead_letter,) = dead_letters_of(
        folded(workers, [Append(append.topic, 0, frame.SerializeToString(), 0)])
    ).values()
    assert dead_letter.whole_record
    assert "they do not fit together" in dead_letter.reason
