"""What a run of the lab says when something fails: a client process, or the reading of a sink."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from bettong.errors import ClientError, LabError, LateError, LocalError
from bettong.lab.clients import _ROUND_BROKEN, Clients, ClientTask, _run_client, clients
from bettong.lab.reading import LatencyRecorder, SinkReading
from bettong.lab.run import _await_results
from bettong.lab.spec import LoadStep, RunSpec
from bettong.lab.target.topics import RunTopics

LOAD = """
from bettong.errors import ClientError

class Failing:
    def first(self): return []
    def rounds(self): raise ValueError("what nobody foresaw")
    def result_bytes(self): return {}
    def wrong(self, results): return ""

def load(messages, seed): return Failing()
"""


def reporting(answers: Sequence[str | None]) -> Clients:
    """Processes that have reported these; None for one that has died."""
    found = []
    for answer in answers:
        ours, theirs = multiprocessing.Pipe()
        if answer is not None:
            theirs.send(answer)
        theirs.close()
        found.append((multiprocessing.current_process(), ours))
    return Clients(found)


@pytest.mark.parametrize("first", ["", _ROUND_BROKEN])
@pytest.mark.parametrize(
    ("second", "text"),
    [
        ("sender 127.0.0.1:7, source 'orders': refused", "sender 127.0.0.1:7, source 'orders': refused"),
        (None, "it ended without reporting an error"),
    ],
)
def test_the_client_that_failed_is_named_and_not_those_that_waited_for_it(
    first: str, second: str | None, text: str
) -> None:
    with pytest.raises(LabError, match=f"^client process 2 of 3 failed: {text}"):
        reporting([first, second, ""]).finish(0.0)


def test_clients_that_all_waited_in_vain_say_so() -> None:
    with pytest.raises(LabError, match="another one failed, or was not done with a round in time"):
        reporting([_ROUND_BROKEN, _ROUND_BROKEN]).finish(0.0)


def test_a_client_that_is_not_ready_is_named() -> None:
    with pytest.raises(LabError, match=r"^client process 1 of 2 failed: load: no such file$"):
        reporting(["load: no such file", ""]).begin()


def test_ctrl_c_is_for_the_lab_and_its_clients_print_nothing(tmp_path: Path) -> None:
    spec = RunSpec(name="x", application="a.py", load=str(tmp_path / "none.py"), messages=1)
    with clients(spec, "127.0.0.1:1", None) as started:
        (process, _) = started._processes[0]
        assert process.pid is not None
        os.kill(process.pid, signal.SIGINT)  # as a terminal sends it to each of its processes
        with pytest.raises(LabError, match=r"none\.py is no Python file"):
            started.begin()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_client_that_was_killed_is_named_though_another_still_waits_for_it() -> None:
    (_, dead) = reporting([None])._processes[0]
    waiting, kept_open = multiprocessing.Pipe()
    processes = [(multiprocessing.current_process(), pipe) for pipe in (waiting, dead)]
    with kept_open, pytest.raises(LabError, match=r"^client process 2 of 2 failed: it ended without"):
        Clients(processes).finish(60.0)


def test_a_client_that_dies_before_all_begin_is_named() -> None:
    """Linux reports an end of a connection with unread data as a reset, and refuses what is sent after it."""
    ready, waiting = multiprocessing.Pipe()
    dead, died = multiprocessing.Pipe()
    with ready, waiting, dead:
        processes = [(multiprocessing.current_process(), pipe) for pipe in (dead, ready)]
        for each in (died, waiting):
            each.send("")
        died.close()
        started = Clients(processes)
        started.begin()
        with pytest.raises(LabError, match=r"^client process 1 of 2 failed: it ended without"):
            started.finish(60.0)


def test_a_client_that_dies_before_it_reads_when_to_begin_is_named() -> None:
    ours, died = multiprocessing.Pipe()
    with ours:
        ours.send(time.time())
        died.close()
        with pytest.raises(LabError, match=r"^client process 1 of 1 failed: it ended without"):
            Clients([(multiprocessing.current_process(), ours)]).finish(60.0)


def test_whatever_ends_a_client_the_others_do_not_wait_for_it(tmp_path: Path) -> None:
    (tmp_path / "load.py").write_text(LOAD)
    spec = RunSpec(name="fails", application="app.py", load=str(tmp_path / "load.py"), messages=10)
    barrier = multiprocessing.get_context("spawn").Barrier(2)
    ours, theirs = multiprocessing.Pipe()
    with ours, theirs:
        _run_client(ClientTask(spec, "127.0.0.1:1", None, 0), barrier, theirs)
        assert "load.py:6 in Failing.rounds: ValueError: what nobody foresaw" in ours.recv()
    assert barrier.broken


def reading(sink: str) -> SinkReading:
    return SinkReading("127.0.0.1:1", sink, 1, LatencyRecorder([], warm_up_s=0))


def test_a_sink_that_could_not_be_read_is_not_late() -> None:
    """A search for the highest rate takes late results for a rate that was missed."""
    late, failed = reading("late"), reading("failed")
    failed._fail(ClientError("receiver 127.0.0.1:1 refuses"))
    with pytest.raises(LabError) as found:
        _await_results({"late": late, "failed": failed}, 0.0, lambda: None)
    assert (type(found.value), str(found.value)) == (LabError, "sink failed: receiver 127.0.0.1:1 refuses")


def test_a_sink_that_lacks_results_is_late() -> None:
    with pytest.raises(
        LateError,
        match=r"^sink late: not all results came within 0 s of the last message, only 0 of the 1 bytes",
    ):
        _await_results({"late": reading("late")}, 0.0, lambda: None)


def stopped() -> None:
    raise LocalError("processor stopped for good: PoisonError")


def test_a_target_that_has_failed_for_good_is_not_waited_for() -> None:
    with pytest.raises(LocalError, match="stopped for good"):
        _await_results({"late": reading("late")}, 0.0, stopped)
    ours, theirs = multiprocessing.Pipe()
    with ours, theirs, pytest.raises(LocalError, match="stopped for good"):
        Clients([(multiprocessing.current_process(), ours)]).finish(-300.0, stopped)


def test_a_client_that_is_not_done_in_time_is_late() -> None:
    """A search for the highest rate takes this for a rate that was missed."""
    ours, theirs = multiprocessing.Pipe()
    with ours, theirs, pytest.raises(LateError, match=r"^client process 1 of 1 failed: no answer for 0 s"):
        Clients([(multiprocessing.current_process(), ours)]).finish(-300.0)


def test_a_client_that_waits_in_vain_for_the_sender_is_late(tmp_path: Path) -> None:
    ours, theirs = multiprocessing.Pipe()
    (tmp_path / "load.py").write_text(LOAD.replace('ValueError("what', 'ClientError("no credit; what'))
    spec = RunSpec(name="fails", application="app.py", load=str(tmp_path / "load.py"), messages=10)
    barrier = multiprocessing.get_context("spawn").Barrier(1)
    with ours, theirs:
        _run_client(ClientTask(spec, "127.0.0.1:1", None, 0), barrier, theirs)
        with pytest.raises(LateError, match=r"^client process 1 of 1 failed: no credit"):
            Clients([(multiprocessing.current_process(), ours)]).finish(0.0)


def test_a_process_without_a_source_waits_as_long_as_the_others_send(tmp_path: Path) -> None:
    steps = [LoadStep(messages_per_s=1, seconds=4000)]
    spec = RunSpec(name="x", application="a.py", load="l.py", steps=steps)
    assert spec.sending_s_max == 4000
    as_fast = RunSpec(name="x", application="a.py", load="l.py", messages=10**10)
    assert as_fast.sending_s_max == 3_600_000


def test_results_in_topics_have_the_latency_of_their_own_message(tmp_path: Path) -> None:
    steps = [LoadStep(messages_per_s=1, seconds=8)]
    spec = RunSpec(name="x", application="a.py", load="l.py", steps=steps)
    fast = RunSpec(name="x", application="a.py", load="l.py", messages=5)
    for sources, sinks, messages in (({}, {}, 500), ({"in": "in"}, {}, 1), ({}, {"out": "out"}, 1)):
        topics = RunTopics("127.0.0.1:1", 2, sources, sinks, tmp_path)
        assert ClientTask(spec, "127.0.0.1:2", topics, 0).frame_messages == messages
        assert ClientTask(fast, "127.0.0.1:2", topics, 0).frame_messages == 500
