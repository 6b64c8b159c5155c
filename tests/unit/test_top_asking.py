"""What `bettong top` shows is asked for beside the screen, again and again, whatever happens to an answer."""

import threading
from collections.abc import Callable

from bettong.cli.top.asking import DeploymentPoller
from bettong.cli.top.lines import Picture
from bettong.errors import LocalError, LogError
from bettong.inspection.deployment import DeploymentAnswers
from tests.samples.watched_deployment import RecordedWatch, answers, dead_letters, inspected
from tests.waiting import eventually

COUNTS = dead_letters({("check", "late"): 2})


def shown(watch: RecordedWatch, enough: Callable[[list[Picture]], bool]) -> list[Picture]:
    pictures: list[Picture] = []
    with DeploymentPoller(watch, pictures.append):
        eventually(lambda: enough(pictures), seconds=20, what=lambda: f"enough of {pictures}")
    eventually(lambda: watch.is_closed, what="the connections are closed")
    return pictures


def test_answers_are_shown_one_after_the_other() -> None:
    watch = RecordedWatch([inspected(answers(0)), inspected(answers(1))], COUNTS)
    first, second, *_ = shown(watch, lambda pictures: len(pictures) >= 2)
    assert first.found is not None
    assert second.found is not None
    assert (first.found.found, second.found.found) == (inspected(answers(0)), inspected(answers(1)))
    assert (second.reasons, second.fault, second.reasons_fault) == (COUNTS, "", "")
    assert second.found.trends.messages_per_s is not None


def test_a_fault_leaves_what_was_there_and_is_gone_with_the_next_answer() -> None:
    watch = RecordedWatch([inspected(answers(0))], faults=[LocalError("nothing runs"), ValueError("x\x1b")])
    first, second, third, *_ = shown(watch, lambda pictures: len(pictures) >= 3)
    assert (first.fault, first.found) == ("nothing runs", None)
    assert "cannot be read: ValueError(" in second.fault
    assert third.fault == ""
    assert third.found is not None


def test_dead_letters_that_cannot_be_read_take_nothing_else_away() -> None:
    class Broken(RecordedWatch):
        def reasons(self, seconds: float) -> None:
            raise LogError(f"there is no such topic, within {seconds:g} s")

    (picture, *_) = shown(Broken([inspected(answers(0))]), bool)
    assert (picture.fault, picture.reasons_fault) == ("", "there is no such topic, within 0.3 s")
    assert picture.found is not None
    silent = inspected(DeploymentAnswers(silent={"kafka": "it does not answer"}))
    (picture, *_) = shown(Broken([silent]), bool)
    assert picture.reasons_fault == "Kafka, which stores them, does not answer"


def test_who_leaves_does_not_wait_for_an_answer() -> None:
    asked, answer = threading.Event(), threading.Event()

    class Slow(RecordedWatch):
        def inspect(self):  # type: ignore[no-untyped-def] # noqa: ANN202 - as its base
            asked.set()
            assert answer.wait(30)
            return super().inspect()

    watch, pictures = Slow([inspected(answers(0))]), list[Picture]()
    asking = DeploymentPoller(watch, pictures.append)
    assert asked.wait(30)
    asking.close()
    answer.set()
    eventually(lambda: watch.is_closed, what="the connections are closed")
    assert pictures == [], "nobody looks any more"
