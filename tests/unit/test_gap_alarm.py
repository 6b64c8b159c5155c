"""A gap that stays is reported, with origin and number; one that is filled in time is not."""

import structlog

from bettong import metrics
from bettong.cli.status_texts import summary
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.edges.redis_store.live import shown
from bettong.identifiers import PartitionId
from bettong.inspection.deployment import DeploymentAnswers, inspection
from bettong.worker.stage_program import StageProgram
from bettong_processor.reporting import PartitionMetrics
from tests.samples.worker import Reading, data, fold, worker


def test_a_frame_that_is_skipped_for_long_is_an_alarm_until_the_lost_one_comes(
    tally: StageProgram,
) -> None:
    now_s, since_s, known, one = [100.0], 0.0, "", worker(tally)
    with RedisStore("redis://127.0.0.1:1", "meters") as store:
        partition_metrics = PartitionMetrics(LiveMetrics(store), lambda: now_s[0], structlog.get_logger(), 30)

        def reported() -> str:
            nonlocal since_s, known
            record = {name: str(value) for name, value in partition_metrics.of(one, None, "").items()}
            if record[metrics.GAP.name] != known:  # as Redis notes it
                since_s, known = now_s[0], record[metrics.GAP.name]
            found_record = shown({**record, metrics.GAP_SINCE_S: str(since_s)}, now_s[0])
            assert bool(found_record.get(metrics.GAP_S.name)) is bool(found_record.get(metrics.GAP.name))
            partitions = {PartitionId("readings", 3): found_record}
            found = inspection("meters", [], DeploymentAnswers(partitions=partitions))
            line = next((line for line in summary(found.overview) if "lost frame" in line), "")
            assert found.goes_on is not bool(line)
            return line

        def send(sequence: int, previous: int) -> None:
            fold(one, [data("readings/a", sequence, [Reading("m", 1)], previous=previous)])

        send(1, 0)
        assert not reported()
        send(3, 2)
        assert not reported()
        now_s[0] += 29
        send(4, 3)
        assert not reported()
        now_s[0] += 2
        assert reported() == (
            "[red]1 partitions wait for a lost frame[/red]: readings/3: readings/a, frame 3: frame 2 did not"
            " come before it, for 31 s; restart its client"
        )
        send(2, 1)
        assert not reported()
        send(9, 8)
        assert not reported(), "another one, just now"


def test_whoever_goes_on_from_an_increment_knows_the_gap_until_it_is_filled(tally: StageProgram) -> None:
    """Under micro-batch the next batch of a partition may come to another process; other clients go on sending."""
    one = worker(tally)
    for sequence, previous in ((1, 0), (3, 2), (4, 3)):
        fold(one, [data("readings/a", sequence, [Reading("m", 1)], previous=previous)])
    assert one.gap is not None
    saved: list[bytes] = []
    for _ in range(2):
        saved.append(one.increment()[1])
        heir = worker(tally)
        for increment in saved:
            heir.restore(increment)
        fold(heir, [data("readings/b", heir.next_offset + 1, [Reading("m", 1)], previous=0)])
        assert heir.gap == one.gap
        one = heir
    fold(one, [data("readings/a", 2, [Reading("m", 1)], previous=1)])
    assert one.gap is None
