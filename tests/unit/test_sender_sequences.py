"""Which numbers a client may use for its frames: with gaps of any size, up to the last that leaves room for more."""

import pytest

from bettong.ingest.refusal import Code
from bettong.v1.ingest_pb2 import IngestFrame
from tests.samples.sender import MemoryLog
from tests.unit.test_sender_session import ONE_ORDER, refusal_of, session


@pytest.mark.parametrize("sequence", [1, 1_800_000_000_000_000_000, 2**62])
def test_what_can_be_a_sequence_is_taken_however_large_the_gap_before_it(sequence: int) -> None:
    log = MemoryLog()
    log.extend(session().take(IngestFrame(sequence=sequence, rows=ONE_ORDER), 0, 9).appends)
    assert [each.sequence for frames in log.data.values() for each in frames] == [sequence]


@pytest.mark.parametrize("sequence", [2**62 + 1, 2**63 - 1, 2**64 - 1], ids=["2**62 + 1", "2**63 - 1", "-1"])
def test_a_sequence_after_which_a_stream_could_not_go_on_is_refused_and_the_stream_goes_on(
    sequence: int,
) -> None:
    one = session()
    refusal = refusal_of(lambda: one.take(IngestFrame(sequence=sequence, rows=ONE_ORDER), 0, 9))
    assert refusal.code is Code.INVALID_ARGUMENT
    assert str(refusal) == (
        f"frame {sequence} of 'orders/feed-1': expected a sequence of at most {2**62}, for after a higher one the"
        " stream could not go on; number frames by a counter or a position in your input, from 1"
    )
    assert one.take(IngestFrame(sequence=1, rows=ONE_ORDER), 0, 9).messages == 1
