"""A repartitioning whose store loses its newest writes, as in a power failure: it is run again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bettong.errors import NotAtRestError, SnapshotError
from bettong.identifiers import PartitionId
from bettong.inspection.live.repartitioning import Repartitioned
from bettong.snapshots import snapshot as codec
from bettong.snapshots.chain import Increment, chains
from bettong.snapshots.partitioning import Partitioning
from tests.samples.worker import tick
from tests.simulation.application_at_rest import FIRST, Cut, CutOffError, World, kept, ready


@pytest.fixture
def worlds(tmp_path: Path) -> Callable[[], World]:
    """Makes new worlds."""
    numbers = iter(range(10_000))

    def made() -> World:
        folder = tmp_path / str(next(numbers))
        shutil.rmtree(folder, ignore_errors=True)
        return World(folder)

    return made


def forget(world: World, id_: PartitionId, increment: Increment) -> None:
    (world.folder / "kept" / f"{id_.stage}-{id_.partition}" / increment.name).unlink()


def switched(record: Partitioning | None) -> Partitioning | None:
    return record if record is not None and record.change is not None and record.change.switched else None


@pytest.mark.parametrize(
    ("to", "lost"), [(2, 0), (5, 0), (5, 1), (5, 2)], ids=["all", "all of more", "even ones", "odd ones"]
)
def test_new_snapshots_that_the_store_has_lost_are_made_again(
    worlds: Callable[[], World], to: int, lost: int
) -> None:
    straight = worlds()
    straight.change(to)
    cuts = 0
    for at in range(1, 1000):
        world = worlds()
        try:
            world.change(to, Cut(at, done=True))
            break
        except CutOffError:
            if (record := switched(world.rest.record)) is None:
                continue
        cuts += 1
        for stage, offsets in record.begins.items():
            for number, offset in enumerate(offsets):
                id_ = PartitionId(stage, number)
                increment = Increment(offset, 0, offset)
                if increment in world.snapshots.increments(id_) and (not lost or number % 2 == lost - 1):
                    forget(world, id_, increment)
        world.change(to)
        assert world.ends_as() == straight.ends_as(), at
    assert cuts > 5


def lose(world: World, ids: list[PartitionId]) -> None:
    """All that was saved since the last change."""
    record = world.rest.record
    assert record is not None
    for id_ in ids:
        for each in world.snapshots.increments(id_):
            if each.offset >= record.begin_of(id_):
                forget(world, id_, each)


@pytest.mark.parametrize("to", [2, 5])
@pytest.mark.parametrize("step", [1, 2], ids=["all", "some"])
def test_new_snapshots_that_are_lost_once_all_is_done_are_made_again(
    worlds: Callable[[], World], to: int, step: int
) -> None:
    world = worlds()
    first = world.change(to)
    done = world.ends_as()
    ids = [PartitionId(stage.name, each) for stage in ready().plan.stages for each in range(to)]
    lose(world, ids[::step])
    world.rest.live = ["processor"]
    with pytest.raises(NotAtRestError, match="processor of 'meters' runs"):
        world.change(to)
    world.rest.live = []
    would = world.repartitioning().change(to, dry_run=True)
    assert would == Repartitioned(FIRST, to, {}, was_switched=True)
    assert world.ends_as() != done
    begun, world.rest.begun = world.rest.begun, {}
    assert world.change(to) == Repartitioned(FIRST, to, first.states, was_switched=True)
    assert world.rest.begun == {id_: begun[id_] for id_ in ids[::step]}
    assert world.ends_as() == done
    assert world.change(to) == Repartitioned(to, to, {})


def test_once_the_old_snapshots_are_gone_it_says_so(worlds: Callable[[], World]) -> None:
    world = worlds()
    world.change(2)
    id_ = PartitionId("readings", 0)
    worker = world.worker(id_, 2)
    for _ in range(2):
        worker.fold(worker.next_offset, tick(1))
        world.snapshots.save(id_, *worker.increment())
    lose(world, [id_, PartitionId("readings", 1)])
    before = world.ends_as()
    with pytest.raises(
        SnapshotError, match="readings/0: its newest snapshot from before the switch is at 0, but at the"
    ):
        world.change(2)
    assert world.ends_as() == before


def test_an_old_snapshot_that_the_store_has_lost_is_said(worlds: Callable[[], World]) -> None:
    world = worlds()
    for at in range(1, 1000):
        world = worlds()
        with pytest.raises(CutOffError):
            world.change(2, Cut(at, done=True))
        if switched(world.rest.record):
            break
    id_ = PartitionId("readings", 1)
    increment, data = kept()[id_]
    forget(world, id_, increment)
    before = world.ends_as()
    with pytest.raises(
        SnapshotError, match=r"readings/1: its newest snapshot from before the switch is at 0, but at the"
    ):
        world.change(2)
    assert world.ends_as() == before
    world.snapshots.save(id_, increment, data)
    world.change(2)
    assert world.states(2) == worlds().states(FIRST)


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_old_states_stay_where_a_zombie_has_saved_a_newer_root(
    worlds: Callable[[], World], *, done: bool
) -> None:
    expected, cuts = worlds().states(FIRST), 0
    for at in range(1, 1000):
        world = worlds()
        for id_ in kept():
            give_a_newer_root(world, id_)
        try:
            world.change(2, Cut(at, done=done))
            break
        except CutOffError:
            cuts += 1
        world.change(2)
        assert world.states(2) == expected, at
    assert cuts > 20


def give_a_newer_root(world: World, id_: PartitionId) -> None:
    """The newest state has an older root than a zombie's."""
    newest, data = kept()[id_]
    forget(world, id_, newest)
    found = codec.decode(data, application="meters", partition=id_)
    found.offset = found.root = found.round = older = newest.offset - 2
    before = codec.encode(found)
    world.snapshots.save(id_, Increment(older, 0, older), before)
    found.offset = found.root = found.round = zombie = newest.offset - 1
    world.snapshots.save(id_, Increment(zombie, 0, zombie), codec.encode(found))
    found.offset, found.since, found.root, found.round = newest.offset, older, older, older
    found.before = codec.checksum(before)
    world.snapshots.save(id_, Increment(newest.offset, older, older), codec.encode(found))
    assert chains(world.snapshots.increments(id_))[0][-1].root == older


def test_a_snapshot_that_the_store_will_not_take_is_refused_before_anything_is_changed(
    worlds: Callable[[], World],
) -> None:
    world = worlds()
    before = world.ends_as()
    for dry_run in (True, False):
        with pytest.raises(
            SnapshotError, match=r"with 1 partitions its snapshot would be [\d,]+ bytes, the store"
        ):
            world.repartitioning(snapshot_bytes_max=300).change(1, dry_run=dry_run)
    assert world.ends_as() == before
