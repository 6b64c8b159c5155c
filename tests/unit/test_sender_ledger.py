"""Receipts, credits and the bound on what a sender holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.held_time import HeldTime
from bettong.identifiers import Origin, SequenceNumber
from bettong.ingest.refusal import Code, Refusal
from bettong.v1.ingest_pb2 import Receipt
from bettong_sender.ledger import Entry, Ledger
from bettong_sender.splitting_progress import SplittingProgress

WINDOW = 4


def ledger(*, acknowledged: int = 0) -> Ledger:
    new = Ledger(Origin("orders/feed"), window=WINDOW)
    new.acknowledged = SequenceNumber(acknowledged)
    assert new.grant(full=False) == WINDOW
    return new


def sent(entry: Entry, *, appends: int = 1, answered: int = 1, dead_letters: int = 0) -> Entry:
    entry.appends, entry.answered, entry.dead_letters = appends, answered, dead_letters
    return entry


def test_a_receipt_reaches_up_to_the_first_frame_that_is_not_durable() -> None:
    ours = ledger()
    entries = [ours.spend(SequenceNumber(sequence), 10) for sequence in (3, 5, 8)]
    sent(entries[0])
    sent(entries[1], appends=2, answered=1)
    sent(entries[2])
    assert ours.receipt(full=False) == Receipt(acknowledged=3, credits=1)
    assert ours.receipt(full=False) is None
    entries[1].answered = 2
    assert ours.receipt(full=False) == Receipt(acknowledged=8, credits=2)
    assert ours.is_complete


def test_nothing_is_acknowledged_before_the_session_is_open_in_the_log() -> None:
    ours = ledger(acknowledged=7)
    opening = ours.opening(SequenceNumber(7))
    opening.appends = 5
    sent(ours.spend(SequenceNumber(8), 10))
    assert ours.receipt(full=False) is None
    opening.answered = 5
    assert ours.receipt(full=False) == Receipt(acknowledged=8, credits=1)


def test_frames_that_are_resent_below_what_is_durable_take_nothing_back() -> None:
    ours = ledger()
    sent(ours.opening(SequenceNumber(100)), appends=1)
    sent(ours.spend(SequenceNumber(1), 10), appends=0, answered=0)
    waiting = ours.spend(SequenceNumber(101), 10)
    assert ours.receipt(full=False) == Receipt(acknowledged=100, credits=1)
    assert ours.acknowledged == 100, "this is what is stored when the session ends"
    sent(waiting)
    assert ours.receipt(full=False) == Receipt(acknowledged=101, credits=1)


def test_records_may_be_answered_before_it_is_known_how_many_there_are() -> None:
    ours = ledger()
    entry = ours.spend(SequenceNumber(1), 10)
    entry.answered = 3
    assert ours.receipt(full=False) is None
    entry.appends = 3
    assert ours.receipt(full=False) == Receipt(acknowledged=1, credits=1)


def test_a_failed_frame_is_never_acknowledged_nor_what_follows_it() -> None:
    ours = ledger()
    sent(ours.spend(SequenceNumber(1), 10)).failed = True
    sent(ours.spend(SequenceNumber(2), 10))
    assert ours.receipt(full=False) is None


def test_dead_letters_are_reported_once_with_their_frames_receipt() -> None:
    ours = ledger()
    sent(ours.spend(SequenceNumber(1), 10), dead_letters=2)
    sent(ours.spend(SequenceNumber(2), 10), dead_letters=3)
    waiting = ours.spend(SequenceNumber(3), 10)
    assert ours.receipt(full=False) == Receipt(acknowledged=2, credits=2, dead_letters=5)
    sent(waiting)
    assert ours.receipt(full=False) == Receipt(acknowledged=3, credits=1)


def test_a_frame_without_a_credit_is_refused() -> None:
    ours = ledger()
    for sequence in range(1, WINDOW + 1):
        ours.spend(SequenceNumber(sequence), 10)
    with pytest.raises(Refusal, match="a frame of 'orders/feed' was sent without a credit") as caught:
        ours.spend(SequenceNumber(5), 10)
    assert caught.value.code is Code.RESOURCE_EXHAUSTED


def test_a_full_sender_acknowledges_but_grants_nothing_until_it_has_room() -> None:
    ours = ledger()
    sent(ours.spend(SequenceNumber(1), 10))
    assert ours.receipt(full=True) == Receipt(acknowledged=1)
    assert ours.receipt(full=True) is None
    assert ours.receipt(full=False) == Receipt(acknowledged=1, credits=1)


def test_a_client_is_without_credit_from_its_last_one_to_the_next_grant() -> None:
    now_s = [10.0]
    ours = ledger()
    ours.without_credit = HeldTime(lambda: now_s[0])
    entries = [ours.spend(SequenceNumber(sequence), 10) for sequence in (1, 2, 3)]
    assert (ours.credits, ours.in_flight, ours.without_credit.is_held) == (1, 3, False)
    entries.append(ours.spend(SequenceNumber(4), 10))
    now_s[0] = 12.0
    assert (ours.credits, ours.in_flight, ours.without_credit.now_s) == (0, 4, 2.0)
    sent(entries[0])
    ours.receipt(full=True)
    now_s[0] = 13.0
    assert (ours.credits, ours.in_flight, ours.without_credit.now_s) == (0, 3, 3.0)
    ours.receipt(full=False)
    assert (ours.credits, ours.in_flight, ours.without_credit.now_s) == (1, 3, 0.0)


@given(st.lists(st.tuples(st.sampled_from(["spend", "answer", "receipt"]), st.booleans())))
def test_credits_held_and_frames_in_flight_never_exceed_the_window(steps: list[tuple[str, bool]]) -> None:
    ours, held, waiting, sequence, acknowledged = ledger(), WINDOW, list[Entry](), 0, 0
    for what, full in steps:
        if what == "spend" and held:
            sequence, held = sequence + 1, held - 1
            waiting.append(ours.spend(SequenceNumber(sequence), 1))
        elif what == "answer" and waiting:
            sent(waiting.pop(0))
        elif what == "receipt" and (receipt := ours.receipt(full=full)) is not None:
            assert receipt.acknowledged >= acknowledged
            acknowledged, held = receipt.acknowledged, held + receipt.credits
        assert held + sequence - acknowledged <= WINDOW
    while waiting:
        sent(waiting.pop())
    last = ours.receipt(full=False)
    assert held + (last.credits if last else 0) == WINDOW


def test_a_silence_counts_only_while_an_answer_is_pending() -> None:
    progress = SplittingProgress()
    assert progress.silent_s(100.0) == 0
    progress.add_pending(100.0)
    progress.add_pending(102.0)
    assert progress.silent_s(103.0) == 3
    progress.note_answer(103.0)
    progress.remove_pending()
    assert progress.silent_s(105.0) == 2
    progress.remove_pending()
    assert progress.silent_s(500.0) == 0
    progress.add_pending(500.0)
    assert progress.silent_s(501.0) == 1
