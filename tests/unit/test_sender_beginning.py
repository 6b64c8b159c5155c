"""Where the reading of an external system begins."""

import pytest

from bettong import KafkaTopic
from bettong.application.external.transport import Start
from bettong.errors import LogError, LogTruncatedError
from bettong.identifiers import SequenceNumber
from bettong_sender.batcher import BatchBoundaries
from bettong_sender.beginning import Beginning, begin, key_of

TOPIC = KafkaTopic("trades")


def stored(**boundaries: BatchBoundaries) -> dict[bytes, bytes]:
    return {key_of(TOPIC, int(name.removeprefix("p"))): each.encode() for name, each in boundaries.items()}


def test_a_new_topic_is_read_from_its_oldest_or_its_newest_record() -> None:
    bounds = {0: (3, 9), 1: (0, 0)}
    assert begin(TOPIC, {}, bounds) == {
        0: Beginning(BatchBoundaries(SequenceNumber(3)), 3),
        1: Beginning(BatchBoundaries(SequenceNumber(0)), 0),
    }
    latest = KafkaTopic("trades", start="latest")
    assert begin(latest, {}, bounds) == {
        0: Beginning(BatchBoundaries(SequenceNumber(9)), 9),
        1: Beginning(BatchBoundaries(SequenceNumber(0)), 0),
    }


def test_what_was_read_goes_on_and_a_partition_that_was_added_is_read_whole() -> None:
    latest = KafkaTopic("trades", start="latest")
    found = begin(latest, stored(p0=BatchBoundaries(SequenceNumber(5), [7])), {0: (0, 9), 1: (0, 4)})
    assert found == {
        0: Beginning(BatchBoundaries(SequenceNumber(5), [7]), 5),
        1: Beginning(BatchBoundaries(SequenceNumber(0)), 0),
    }


@pytest.mark.parametrize(("start", "begins"), [("earliest", 0), ("latest", 9)])
def test_another_topic_of_the_source_goes_on_from_no_offset_of_the_one_before(
    start: Start, begins: int
) -> None:
    another = KafkaTopic("trades2", start=start)
    found = begin(another, stored(p0=BatchBoundaries(SequenceNumber(5), [7])), {0: (0, 9)})
    assert found == {0: Beginning(BatchBoundaries(SequenceNumber(begins)), begins)}
    shorter = begin(another, stored(p0=BatchBoundaries(SequenceNumber(50))), {0: (0, 9)})
    assert shorter == found


def test_records_that_were_deleted_unread_stop_the_source_unless_they_may_be_skipped() -> None:
    boundaries = stored(p0=BatchBoundaries(SequenceNumber(5), [7, 12]))
    with pytest.raises(
        LogTruncatedError, match=r"topic trades/0: records 5 to 9 were deleted .*on_lost='skip'"
    ):
        begin(TOPIC, boundaries, {0: (10, 20)})
    skipping = KafkaTopic("trades", on_lost="skip")
    assert begin(skipping, boundaries, {0: (10, 20)}) == {
        0: Beginning(BatchBoundaries(SequenceNumber(5), [7, 12]), 10, lost=5)
    }


@pytest.mark.parametrize(
    "boundaries", [BatchBoundaries(SequenceNumber(8)), BatchBoundaries(SequenceNumber(3), [8])]
)
def test_a_topic_that_was_made_anew_is_refused(boundaries: BatchBoundaries) -> None:
    with pytest.raises(LogTruncatedError, match="topic trades/0 ends at offset 7, but was read up to 8"):
        begin(TOPIC, stored(p0=boundaries), {0: (0, 7)})


def test_stored_bytes_that_are_no_boundaries_are_refused_by_name() -> None:
    with pytest.raises(
        LogError, match=r"the stored batch boundaries of topic trades/3: .* are no batch boundaries"
    ):
        begin(TOPIC, {key_of(TOPIC, 3): b"garbage"}, {3: (0, 7)})
