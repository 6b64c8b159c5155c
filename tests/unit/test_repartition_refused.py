"""What a repartitioning refuses when the application is not as it was: each rule by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.edges.kafka_log import Record
from bettong.edges.partitioning_log import stored
from bettong.edges.redis_store import VALUE_BYTES_MAX, RedisStore, RedisVersions
from bettong.errors import LogError, StoreError
from bettong.inspection.repartition import check_stages, present, silent_in_s, speak
from bettong.snapshots.partitioning import Partitioning
from tests.simulation.application_at_rest import FIRST, Cut, CutOffError, World

TOPICS = {"shop.stage.orders": 3, "shop.sink.totals": 3}
NEW_SINK = {**TOPICS, "shop.sink.new": 0}
BEGUN = Partitioning(0, 3).begun(8, "a")
SWITCHED = BEGUN.switched({"orders": (1, 1, 1, 1, 1, 1, 1, 1)})


def test_a_damaged_record_of_how_many_partitions_there_are_is_named() -> None:
    assert stored(Record("shop.partitioning", 0, 6, BEGUN.encode())) == BEGUN
    for garbage, fault in ((b"\xff", "is damaged"), (b"", r"says \[0\]: expected 1 to 4096 partitions")):
        with pytest.raises(
            LogError, match=rf"shop.partitioning, offset 7: .* {fault}.* made anew with its other records"
        ):
            stored(Record("shop.partitioning", 0, 7, garbage))


def test_without_any_topic_it_has_never_run() -> None:
    with pytest.raises(
        LogError, match=r"topics shop.sink.totals, shop.stage.orders do not exist: .* never run"
    ):
        present(None, dict.fromkeys(TOPICS, 0))


@pytest.mark.parametrize("kept", [None, Partitioning(1, 3)], ids=["", "repartitioned before"])
def test_a_topic_that_the_file_has_now_is_made_by_a_start(kept: Partitioning | None) -> None:
    assert present(kept, TOPICS).partitions == 3
    with pytest.raises(
        LogError, match=r"shop.sink.new do not exist: the application's file has changed .* start it"
    ):
        present(kept, NEW_SINK)


def test_while_no_service_starts_the_file_of_before_or_the_way_back_is_named() -> None:
    with pytest.raises(LogError, match=r"file that it ran with, or undo the change with --back"):
        present(BEGUN, NEW_SINK)


def test_what_has_switched_is_finished_whatever_sinks_the_file_has() -> None:
    assert present(SWITCHED, NEW_SINK) == SWITCHED
    check_stages(SWITCHED, ["orders"])


def test_what_has_switched_is_not_finished_with_other_stages() -> None:
    for stages, named in ((["orders", "more"], "more, orders"), (["other"], "other")):
        with pytest.raises(
            LogError, match=f"had stages orders when .* its file has {named}: finish that with"
        ):
            check_stages(SWITCHED, stages)


def test_a_stage_that_has_a_log_and_is_not_in_the_file_is_in_the_way(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.rest.left_out = ["forgotten"]
    with pytest.raises(
        LogError, match=r"stages forgotten have logs, but are not in the application's file: .*topics"
    ):
        world.change(2)
    assert world.rest.record is None
    world.rest.left_out = []
    assert world.change(2).new == 2


def test_a_sink_that_is_new_in_the_file_is_not_in_the_way_of_an_end(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    ends = set()
    for at in range(1, 1000):
        world = World(tmp_path_factory.mktemp("world"))
        expected = world.states(FIRST)
        try:
            world.change(2, Cut(at, done=True))
            break
        except CutOffError:
            record = world.rest.record
        if record is None or record.change is None:
            continue
        world.rest.topics["meters.sink.new"] = 0
        if record.change.switched:
            world.change(2)
        else:
            world.repartitioning().take_back()
        ends.add(record.change.switched)
        assert world.rest.record is not None
        assert world.states(world.rest.record.partitions) == expected
    assert ends == {False, True}


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry run", "for real"])
def test_who_may_not_add_partitions_is_told_before_anything_is_begun(
    tmp_path: Path, *, dry_run: bool
) -> None:
    world = World(tmp_path)
    world.rest.refusal = "this user needs Alter"
    with pytest.raises(LogError, match="this user needs Alter"):
        world.repartitioning().change(FIRST + 1, dry_run=dry_run)
    assert not world.rest.records
    world.repartitioning().change(FIRST - 1, dry_run=dry_run)  # no topic needs any


def test_a_service_that_has_just_stopped_is_waited_for_as_long_as_its_record_lives() -> None:
    live = {"a": {"ttl_s": "10.0", "age_s": "2.5"}, "b": {"ttl_s": "600.0", "age_s": "1.0"}}
    assert silent_in_s(live) == 599.0
    assert silent_in_s({}) == 0.0


def test_a_service_whose_record_does_not_grow_older_runs() -> None:
    before = {"a": {"ttl_s": "10.0", "age_s": "2.5"}}
    for age_s, found in (("3.0", []), ("3.1", []), ("2.9", []), ("2.5", ["a"]), ("0.2", ["a"])):
        assert speak(before, {"a": {"ttl_s": "10.0", "age_s": age_s}}, after_s=0.5) == found
    assert speak(before, {}, after_s=0.5) == []
    assert speak({}, before, after_s=0.5) == ["a"]


def test_redis_is_not_given_a_reference_table_that_it_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bettong.edges.redis_store.connection.VALUE_BYTES_MAX", 1000)
    assert VALUE_BYTES_MAX == 512 * 1024 * 1024
    with (
        RedisStore("redis://127.0.0.1:1/0", "shop") as store,
        pytest.raises(
            StoreError, match=r"reference table prices: 1001 bytes, Redis takes at most 1000; keep fewer"
        ),
    ):
        RedisVersions(store).put("prices", "7", bytes(1001))
