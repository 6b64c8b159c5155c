"""Messages that were excluded because they killed workers stay in the status for a while, one by one."""

from bettong import metrics
from bettong.cli.status_texts import summary
from bettong.edges.redis_store.live import shown
from bettong.frames.frame import Frame
from bettong.identifiers import Origin, PartitionId, SequenceNumber
from bettong.inspection.deployment import DeploymentAnswers, inspection
from bettong.worker.exclusions import Excluded, ExcludedTimer, Exclusion
from bettong_processor.crashes.guard import left_out_text

FRAME = Frame(origin=Origin("in/a"), sequence=SequenceNumber(7), previous=SequenceNumber(6), rows=[b""])
WHY = "killed the worker: signal 11 (SIGSEGV)"


def test_a_message_is_named_by_all_that_identifies_it() -> None:
    one, two = Excluded(3, 4, "count", WHY), Excluded(5, 9, "count", WHY)
    where = "offset 12, origin in/a, sequence 7"
    assert left_out_text(Exclusion(12, (one,)), FRAME) == f"{where}, index 3: {WHY}"
    assert (
        left_out_text(Exclusion(12, (two, one)), FRAME)
        == f"{where}, index 5 to 8: {WHY}; and 1 more of its frame"
    )
    timer = ExcludedTimer("count", b"key 'a'", "count", WHY)
    assert (
        left_out_text(Exclusion(12, timers=(timer,)), FRAME) == f"{where}, a timer of 'count': key 'a': {WHY}"
    )
    assert left_out_text(Exclusion(12, record=WHY), FRAME) == f"{where}: {WHY}"


def test_status_shows_it_for_ten_minutes_and_the_exit_code_is_as_before() -> None:
    record = {metrics.LEFT_OUT.name: "offset 12, index 3", metrics.LEFT_OUT_SINCE_S: "1000.5"}

    def lines(now_s: float) -> list[str]:
        answers = DeploymentAnswers(partitions={PartitionId("in", 2): shown(record, now_s)})
        found = inspection("meters", [], answers)
        assert found.goes_on
        return [line for line in summary(found.overview) if "recently skipped" in line]

    (line,) = lines(1599)
    assert line.endswith("recently skipped what killed workers[/yellow]: in/2: offset 12, index 3")
    assert lines(1601) == []
