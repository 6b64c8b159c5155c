"""A deployment that is watched: what changed, and what is left to show while Redis or Kafka is away."""

from dataclasses import replace

from bettong.inspection.accounts import AccountLine, differences
from bettong.inspection.changes import CHANGES_MAX, Change, ChangeKind, added
from bettong.inspection.deployment import DeploymentAnswers, Inspection
from bettong.inspection.services import ProcessFacts
from bettong.inspection.watched import RATES_MAX, Watched, watched
from tests.samples.watched_deployment import BEGUN_S, answers, inspected, watched_for

AWAY = inspected(DeploymentAnswers(silent={"redis": "Redis at x does not answer"}, logs=answers(0).logs))


def then(before: Watched, *inspections: Inspection) -> Watched:
    found = before
    for second, each in enumerate(inspections, 100):
        found = watched(found, each, at_s=float(second), unix_s=BEGUN_S + second)
    return found


def new_texts(before: Watched, *inspections: Inspection) -> list[str]:
    found = then(before, *inspections)
    return [f"{each.what}: {each.text}" for each in found.changes[len(before.changes) :]]


def test_the_numbers_from_before_stay_with_their_time_while_redis_is_away() -> None:
    before = watched_for(5)
    found = then(before, AWAY, AWAY)
    assert found.numbers == before.numbers
    assert (found.at_s, found.trends, found.rates) == (before.at_s, before.trends, before.rates)
    assert found.found == AWAY
    back = then(before, AWAY, inspected(answers(9)))
    assert (back.numbers, back.at_s) == (back.found, 101.0)


def test_what_does_not_add_up_is_told_of_where_it_did_not_the_time_before_either() -> None:
    line = AccountLine("orders", "input", "orders", 9, 9, 9, None, 0, 0, 0, 0, 3, ("3 messages are lost",))
    right, wrong = (replace(inspected(answers(1)), accounts=[each]) for each in (calm(line), line))
    before = then(watched_for(1), right)
    assert differences(then(before, wrong).accounts) == []
    assert differences(then(before, wrong, wrong).accounts) == ["orders, 3 messages are lost"]
    assert differences(then(before, wrong, AWAY).accounts) == []
    assert differences(then(before, wrong, wrong, AWAY).accounts) == ["orders, 3 messages are lost"]
    assert then(before, wrong, wrong, right).accounts == [calm(line)]
    first = watched(None, wrong, at_s=0.0, unix_s=BEGUN_S)
    assert differences(first.accounts) == ["orders, 3 messages are lost"]


def calm(line: AccountLine) -> AccountLine:
    return replace(line, differences=())


def test_without_redis_from_the_start_there_are_no_numbers() -> None:
    found = watched(None, AWAY, at_s=1.0, unix_s=BEGUN_S)
    assert found.numbers is None


def test_where_logs_end_says_nothing_of_partitions_while_redis_is_away() -> None:
    assert (AWAY.partitions, AWAY.stages, AWAY.overview.lag) == ([], [], None)
    assert AWAY.away == ("redis",)
    assert not AWAY.goes_on


def test_the_first_inspection_says_since_when_each_service_is_as_it_is() -> None:
    found = watched_for(1)
    assert [(each.at_s, each.what, each.text) for each in found.changes][-1] == (
        BEGUN_S - 7200,
        "sender",
        "running",
    )


def test_services_that_change_are_changes_with_their_reason() -> None:
    before = watched_for(3)
    waits = answers(3)
    live = {
        **waits.live,
        "receiver": {**waits.live["receiver"], "state": "waiting", "detail": "sink rows: away"},
    }
    assert new_texts(before, inspected(replace(waits, live=live)), inspected(answers(4))) == [
        "receiver: was running, is waiting: sink rows: away",
        "receiver: was waiting, is running",
    ]


def test_a_service_that_was_started_again_between_two_inspections_is_a_change() -> None:
    def facts(restarts: int) -> dict[str, ProcessFacts]:
        return {"kafka": ProcessFacts(7, BEGUN_S, restarts, runs=True, log="x", fault="signal SIGKILL")}

    before = watched(None, inspected(answers(0), facts(0)), at_s=0.0, unix_s=BEGUN_S)
    assert new_texts(before, inspected(answers(1), facts(1))) == [
        "kafka: was started again, after: signal SIGKILL"
    ]


def test_redis_that_is_away_is_one_change_and_not_one_of_all_that_it_knows() -> None:
    names = ("sender", "processor", "receiver")
    processes = dict.fromkeys(names, ProcessFacts(7, BEGUN_S - 9000, 0, runs=True, log="x"))
    before = watched(None, inspected(answers(0), processes), at_s=0.0, unix_s=BEGUN_S)
    away = inspected(DeploymentAnswers(silent={"redis": "x"}), processes)
    assert {row.state for row in away.services} == {"unknown"}
    texts = new_texts(before, away, inspected(answers(1), processes))
    assert texts == ["redis: does not answer", "redis: answers again"]


def test_partitions_that_move_stand_still_or_lose_a_frame_are_changes() -> None:
    before, now = watched_for(1), answers(1)
    moved = replace(now, slots=dict.fromkeys(now.slots, 1))
    (text,) = new_texts(before, inspected(moved))
    named = [f"{stage} from slot 0 to slot 1" for stage in ("orders/0", "orders/2", "spreads/0")]
    assert text == f"partitions: {'; '.join(named)}; and 1 more"
    first = next(iter(now.partitions))
    gap = {**now.partitions, first: {**now.partitions[first], "gap": "a/b, frame 7", "gap_s": "31"}}
    assert new_texts(before, inspected(replace(now, partitions=gap))) == [
        "partitions: 1 wait for a lost frame: orders/0: a/b, frame 7, for 31 s"
    ]
    processor = {**now.live["processor"], "stalled_s/spreads/2": "9", "lag/spreads/2": "4"}
    still = replace(answers(20), live={**now.live, "processor": processor})
    (text,) = new_texts(before, inspected(still))
    assert text == "partitions: stand still: spreads/2 at offset 120,622"


def test_a_task_that_follows_another_one_in_its_slot_is_a_change() -> None:
    before = watched(
        None, inspected(replace(answers(0), incarnations={0: 5, 1: 6})), at_s=0.0, unix_s=BEGUN_S
    )
    followed = inspected(replace(answers(1), incarnations={0: 5, 1: 9, 2: 7}))
    assert new_texts(before, followed) == ["workers: ended and were replaced: slot 1"]
    assert new_texts(before, inspected(answers(1))) == [], "who lives no more is told by partitions"


def test_dead_letters_that_keep_coming_are_one_change() -> None:
    changes = [each for each in watched_for(45).changes if each.what == "dead letters"]
    assert [each.text.partition(",")[0] for each in changes] == ["4 in all", "5 in all"], "20 s apart"
    kept: tuple[Change, ...] = ()
    for second in range(100):
        kept = added(kept, [Change(float(second), ChangeKind.MESSAGES, "dead letters", f"{second} in all")])
    assert [each.text for each in kept] == ["99 in all"]


def test_changes_and_rates_are_bounded() -> None:
    kept = added((), [Change(float(second), ChangeKind.SERVICE, "kafka", "was") for second in range(2000)])
    assert len(kept) == CHANGES_MAX
    assert kept[-1].at_s == 1999.0
    assert len(watched_for(90).rates) == RATES_MAX
