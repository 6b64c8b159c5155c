"""What the process does that scales workers, by an API server that is played, or that resets states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from pathlib import Path

import pytest

from bettong.errors import ClusterError, ClusterUnavailableError
from bettong.inspection.live.application import loaded_plan
from bettong_console.answering import answer
from bettong_console.performing import scaled
from bettong_console.question import Question, ResetQuestion, ScaleQuestion
from tests.console.api_server import RELEASE, WORKERS, ApiServer, served_api
from tests.console.sites import EXAMPLE
from tests.console.test_questions import locations

FOUR = ScaleQuestion(RELEASE, 4, dry_run=False)


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    found = ApiServer()
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with served_api(found, tmp_path / "kubeconfig"):
        yield found


@pytest.fixture
def answered(tmp_path: Path) -> Callable[[Question], tuple[int, str]]:
    """What the process of a question sends, of an application of which nothing answers."""

    def asked(question: Question) -> tuple[int, str]:
        receiving, sending = Pipe(duplex=False)
        with receiving, sending:
            answer(question, str(EXAMPLE), locations(tmp_path), sending)
            found: tuple[int, str] = receiving.recv()
        return found

    return asked


@pytest.fixture(autouse=True)
def _no_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The alarm would end the process of the tests."""
    monkeypatch.setattr("bettong_console.answering.signal.alarm", lambda _: 0)


def test_workers_are_set_as_by_the_command(api: ApiServer) -> None:
    found = scaled(FOUR)
    assert (api.replicas, found["before"], found["workers"]) == (4, 2, 4)
    assert found["texts"] == [f"{WORKERS}: 2 -> 4 workers, 16 slots for 16 partitions a stage"]


def test_what_it_would_do_and_how_many_there_are_change_nothing(api: ApiServer) -> None:
    now = scaled(ScaleQuestion(RELEASE, None, dry_run=True))
    assert now["texts"] == ["workers: 2 of 2 live, 8 slots for 16 partitions a stage"]
    assert scaled(ScaleQuestion(RELEASE, 0, dry_run=True))["texts"] == [
        f"{WORKERS}: 2 -> 0 workers, 0 slots for 16 partitions a stage",
        "nothing is processed until there are workers again; new records wait in Kafka",
    ]
    assert api.replicas == 2
    assert {verb for verb, _, _ in api.calls} == {"list", "get"}


def test_what_the_command_refuses_is_refused_with_its_words(api: ApiServer) -> None:
    with pytest.raises(ClusterError, match="17 workers for 16 partitions"):
        scaled(ScaleQuestion(RELEASE, 17, dry_run=True))
    with pytest.raises(
        ClusterError, match="no release 'other' of Bettong in namespace space; there are trial"
    ):
        scaled(ScaleQuestion("other", 3, dry_run=False))
    target = {"kind": "StatefulSet", "name": WORKERS}
    api.scalers = [{"metadata": {"name": "auto"}, "spec": {"scaleTargetRef": target}}]
    for workers in (None, 3):
        with pytest.raises(ClusterError, match="scaled by the autoscaler auto"):
            scaled(ScaleQuestion(RELEASE, workers, dry_run=True))
    assert api.replicas == 2


def test_a_cluster_that_goes_in_the_middle_is_away_and_one_that_refuses_is_not(
    api: ApiServer, answered: Callable[[Question], tuple[int, str]]
) -> None:
    api.broken = "PATCH"
    with pytest.raises(ClusterUnavailableError, match="no answer from the cluster at"):
        scaled(FOUR)
    status, text = answered(FOUR)
    assert (status, "no answer from the cluster" in text) == (503, True)
    assert answered(ScaleQuestion(RELEASE, 17, dry_run=False))[0] == 422
    api.rules = []
    status, text = answered(FOUR)
    assert (status, "a Role of u must allow" in text) == (422, True)


def test_states_are_not_reset_while_nobody_knows_whether_a_processor_runs(
    answered: Callable[[Question], tuple[int, str]],
) -> None:
    assert loaded_plan(str(EXAMPLE)).application == "visits"
    status, text = answered(ResetQuestion(dry_run=False))
    assert (status, "Redis" in text or "redis" in text) == (503, True)
