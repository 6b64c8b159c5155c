"""Where the reading of an external system begins."""

import pytest

from bettong import KafkaTopic
from bettong.application.external.transport import Start
from bettong.errors import LogError, LogTruncatedError
from bettong.identifiers import SequenceNumber
from bettong_sender.batcher import BatchBoundaries
from bettong_sender.beginning import Beginning, begin, key_of

TOPIC = KafkaTopic("trades")
ID = "id-1"


def stored(**boundaries: BatchBoundaries) -> dict[bytes, bytes]:
    return {key_of(TOPIC, int(name.removeprefix("p"))): each.encode() for name, each in boundaries.items()}


def test_a_new_topic_is_read_from_its_oldest_or_its_newest_record() -> None:
    bounds = {0: (3, 9), 1: (0, 0)}
    assert begin(TOPIC, {}, bounds, identity=ID) == {
        0: Beginning(BatchBoundaries(SequenceNumber(3), identity=ID), 3),
        1: Beginning(BatchBoundaries(SequenceNumber(0), identity=ID), 0),
    }
    latest = KafkaTopic("trades", start="latest")
    assert begin(latest, {}, bounds, identity=ID) == {
        0: Beginning(BatchBoundaries(SequenceNumber(9), identity=ID), 9),
        1: Beginning(BatchBoundaries(SequenceNumber(0), identity=ID), 0),
    }


def test_what_was_read_goes_on_and_a_partition_that_was_added_is_read_whole() -> None:
    latest = KafkaTopic("trades", start="latest")
    found = begin(
        latest, stored(p0=BatchBoundaries(SequenceNumber(5), [7])), {0: (0, 9), 1: (0, 4)}, identity=ID
    )
    assert found == {
        0: Beginning(BatchBoundaries(SequenceNumber(5), [7], identity=ID), 5),
        1: Beginning(BatchBoundaries(SequenceNumber(0), identity=ID), 0),
    }


@pytest.mark.parametrize(("start", "begins"), [("earliest", 0), ("latest", 9)])
def test_another_topic_of_the_source_goes_on_from_no_offset_of_the_one_before(
    start: Start, begins: int
) -> None:
    another = KafkaTopic("trades2", start=start)
    found = begin(another, stored(p0=BatchBoundaries(SequenceNumber(5), [7])), {0: (0, 9)}, identity=ID)
    assert found == {0: Beginning(BatchBoundaries(SequenceNumber(begins), identity=ID), begins)}
    shorter = begin(another, stored(p0=BatchBoundaries(SequenceNumber(50))), {0: (0, 9)}, identity=ID)
    assert shorter == found


def test_records_that_were_deleted_unread_stop_the_source_unless_they_may_be_skipped() -> None:
    boundaries = stored(p0=BatchBoundaries(SequenceNumber(5), [7, 12]))
    with pytest.raises(
        LogTruncatedError, match=r"topic trades/0: records 5 to 9 were deleted .*on_lost='skip'"
    ):
        begin(TOPIC, boundaries, {0: (10, 20)}, identity=ID)
    skipping = KafkaTopic("trades", on_lost="skip")
    assert begin(skipping, boundaries, {0: (10, 20)}, identity=ID) == {
        0: Beginning(BatchBoundaries(SequenceNumber(5), [7, 12], identity=ID), 10, lost=5)
    }


@pytest.mark.parametrize(
    "boundaries", [BatchBoundaries(SequenceNumber(8)), BatchBoundaries(SequenceNumber(3), [8])]
)
def test_a_topic_that_was_made_anew_is_refused(boundaries: BatchBoundaries) -> None:
    with pytest.raises(LogTruncatedError, match="topic trades/0 ends at offset 7, but was read up to 8"):
        begin(TOPIC, stored(p0=boundaries), {0: (0, 7)}, identity=ID)


def test_stored_bytes_that_are_no_boundaries_are_refused_by_name() -> None:
    with pytest.raises(
        LogError, match=r"the stored batch boundaries of topic trades/3: .* are no batch boundaries"
    ):
        begin(TOPIC, {key_of(TOPIC, 3): b"garbage"}, {3: (0, 7)}, identity=ID)


def test_a_topic_that_was_made_anew_and_has_grown_past_what_was_read_is_refused() -> None:
    boundaries = stored(p0=BatchBoundaries(SequenceNumber(5), [7], ID))
    with pytest.raises(LogTruncatedError) as caught:
        begin(TOPIC, boundaries, {0: (0, 5000)}, identity="id-2")
    assert str(caught.value) == (
        "topic trades/0 was deleted and made anew: its id is id-2, and id-1 was read up to offset 5; read the new one"
        " under another name"
    )


@pytest.mark.parametrize(("known", "found", "kept"), [("", ID, ID), (ID, ID, ID), (ID, "", ID), ("", "", "")])
def test_what_was_stored_without_an_id_adopts_the_one_that_is_found(
    known: str, found: str, kept: str
) -> None:
    boundaries = stored(p0=BatchBoundaries(SequenceNumber(5), [7], known))
    begun = begin(TOPIC, boundaries, {0: (0, 9)}, identity=found)
    assert begun == {0: Beginning(BatchBoundaries(SequenceNumber(5), [7], kept), 5)}


def test_boundaries_of_before_ids_were_stored_are_read() -> None:
    found = BatchBoundaries.decode(b'{"durable": 5, "ends": [7]}')
    assert found == BatchBoundaries(SequenceNumber(5), [7])
