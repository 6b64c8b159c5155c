"""The process that sends dead letters again: which ones, how many, and its report on the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bettong.errors import BettongError, ClientError
from bettong.frames.dead_letter_id import DeadLetterId
from bettong.inspection.dead_letters import Found, ResendMark
from bettong.inspection.live import resending
from bettong.inspection.live.application import loaded_plan
from bettong.inspection.retry import Resend
from bettong.local.locations import FoundLocations
from bettong.v1.frame_pb2 import DeadLetter
from bettong_console import performing
from bettong_console.question import RetryQuestion
from tests.console.sites import EXAMPLE
from tests.console.test_questions import locations

SENDER = "127.0.0.1:7100"
MESSAGE = b'{"person":"ann","page":"/","at":1700000000000000000}'
GOOD, LATE, BEHIND = (DeadLetterId(0, offset, 0) for offset in range(3))


def dead_letter(id_: DeadLetterId, origin: str = "clicks/feed", computation: str = "clicks") -> Found:
    return Found(
        id_,
        1_700_000_000_000_000_000,
        DeadLetter(computation=computation, reason="no", origin=origin, message=MESSAGE),
    )


LETTERS = {
    GOOD: dead_letter(GOOD),
    LATE: dead_letter(LATE),
    BEHIND: dead_letter(BEHIND, "clicks-by-page/clicks/0", "Hour"),
}


class RecordedLog:
    """The topic of dead letters, of which one was sent again before."""

    def dead_letters(self) -> Iterator[Found]:
        """See DeadLetterLog."""
        yield from LETTERS.values()

    def retried(self) -> dict[DeadLetterId, ResendMark]:
        """See DeadLetterLog."""
        return {LATE: ResendMark(1, done=True)}

    def those(self, ids: Iterable[DeadLetterId]) -> Iterator[Found]:
        """See DeadLetterLog."""
        yield from (LETTERS[id_] for id_ in ids if id_ in LETTERS)
        if set(ids) - LETTERS.keys():
            raise BettongError("there is no dead letter 0.9.0")


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FoundLocations:
    monkeypatch.setattr(performing, "DeadLetterLog", lambda *_, **__: RecordedLog())
    return replace(locations(tmp_path), sender=SENDER)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, DeadLetterId]]:
    """The messages that were sent, and their targets."""
    found: list[tuple[str, DeadLetterId]] = []

    def send_again(target: str, id_: DeadLetterId, decision: Resend) -> bool:
        assert decision.source == "clicks"
        found.append((target, id_))
        return True

    monkeypatch.setattr(resending, "send_again", send_again)
    return found


def retried(question: RetryQuestion, where: FoundLocations) -> dict[str, object]:
    return performing.retried(question, loaded_plan(str(EXAMPLE)), where)


def test_all_that_can_be_are_sent_and_the_rest_is_told_with_the_reason(
    where: FoundLocations, sent: list[tuple[str, DeadLetterId]]
) -> None:
    found = retried(RetryQuestion((), "", dry_run=False), where)
    assert sent == [(SENDER, GOOD)]
    assert {name: found[name] for name in ("sent", "already", "held", "refused", "fault")} == {
        "sent": 1,
        "already": 1,
        "held": 1,
        "refused": 0,
        "fault": None,
    }
    assert "no client can feed" in str(found["texts"])


def test_a_computation_or_names_choose_and_a_dry_run_sends_nothing(
    where: FoundLocations, sent: list[tuple[str, DeadLetterId]]
) -> None:
    assert retried(RetryQuestion((), "Hour", dry_run=False), where)["held"] == 1
    assert retried(RetryQuestion((GOOD,), "", dry_run=True), where)["sent"] == 1
    assert sent == []
    assert retried(RetryQuestion((GOOD,), "", dry_run=False), where)["held"] == 0
    assert sent == [(SENDER, GOOD)]


def test_a_sender_that_is_away_is_the_fault_and_what_was_sent_before_is_told(
    where: FoundLocations, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> bool:
        raise ClientError("no sender answers at 127.0.0.1:7100")

    monkeypatch.setattr(resending, "send_again", away)
    found = retried(RetryQuestion((), "", dry_run=False), where)
    assert (found["sent"], found["fault"]) == (0, "no sender answers at 127.0.0.1:7100")


def test_more_than_a_call_may_send_is_left_for_the_next_one(
    where: FoundLocations, sent: list[tuple[str, DeadLetterId]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(performing, "_RETRIES_MAX", 1)
    found = retried(RetryQuestion((), "", dry_run=False), where)
    assert (len(sent), found["fault"]) == (1, "there are more: send the rest with another call")


def test_a_name_of_none_is_an_error_and_the_fault_where_others_were_sent(
    where: FoundLocations, sent: list[tuple[str, DeadLetterId]]
) -> None:
    unknown = DeadLetterId(0, 9, 0)
    with pytest.raises(BettongError, match=r"there is no dead letter 0\.9\.0"):
        retried(RetryQuestion((unknown,), "", dry_run=False), where)
    found = retried(RetryQuestion((unknown, GOOD), "", dry_run=False), where)
    assert (found["sent"], found["fault"]) == (1, "there is no dead letter 0.9.0")
    assert sent == [(SENDER, GOOD)]
