"""All of a new partition's snapshot but its states.

delivery table    see `delivery`; the same in all partitions of a stage
sent              of frames to a stage: what that stage's table has taken, so that its first frame is no gap.
                  Of frames to a sink: as it was, for a sink's partitions stay as they are
log clock         the latest of the old ones
event clock       see `event_clocks`
counters          as they were; those of partitions that are no more are added to those of another
accounts          the same
references        the newest versions: some old partitions see them already
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bettong.application.plan import Plan, Stage
from bettong.identifiers import (
    NO_SEQUENCE,
    Origin,
    PartitionId,
    SequenceNumber,
    partition_origin,
    stage_producer,
)
from bettong.v1.frame_pb2 import ReferenceVersion
from bettong.v1.snapshot_pb2 import Account, Accounts, Counters, DeliveryTable, EventClock, Sent, Snapshot
from bettong.worker.event_clock import idle_times
from bettong.worker.repartitioning import delivery, event_clocks


@dataclass(frozen=True, slots=True)
class NewGeneration:
    """The new generation. `offsets`: by stage and partition, that of the first record to fold."""

    generation: int
    partitions: int
    offsets: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class _StageTables:
    """What all new partitions of a stage have in common."""

    delivery: DeliveryTable
    highest: Mapping[Origin, SequenceNumber]
    clock: EventClock | None
    log_ns: int


def new_heads(
    plan: Plan, old: Mapping[str, Sequence[Snapshot]], new: NewGeneration
) -> Callable[[PartitionId], Snapshot]:
    """Returns what makes a partition's new snapshot without its states: one at a time, for all hold the same tables.

    `old`: by stage, the newest snapshots of its partitions, with or without states; an empty one where nothing was ever
    folded.
    """
    tables = {stage.name: _tables(plan, stage, old[stage.name], new.partitions) for stage in plan.stages}

    def head(id_: PartitionId) -> Snapshot:
        return _head(plan, plan.stage(id_.stage), id_.partition, old[id_.stage], new, tables)

    return head


def _tables(plan: Plan, stage: Stage, old: Sequence[Snapshot], partitions: int) -> _StageTables:
    found = [each.delivery for each in old]
    log_ns = max(each.now_ns for each in old)
    before = {stage_producer(target, each.name) for each in plan.stages for target, _ in _targets(each)}
    producers = [each for entry in stage.inputs for each in entry.producers if each in before]
    clock = (
        event_clocks.merged(old, producers, partitions, log_ns=log_ns, idle_ns=idle_times(stage))
        if stage.needs_time
        else None
    )
    return _StageTables(delivery.merged(found), delivery.highest_of(found), clock, log_ns)


def _targets(stage: Stage) -> Iterator[tuple[str, str]]:
    """The streams of `key_by` that leave a stage, and the stage that each enters; each once."""
    found = {output.target.name: output.stage for output in stage.outputs if output.stage is not None}
    return iter(found.items())


def _head(
    plan: Plan,
    stage: Stage,
    number: int,
    old: Sequence[Snapshot],
    new: NewGeneration,
    tables: Mapping[str, _StageTables],
) -> Snapshot:
    own, offset = tables[stage.name], new.offsets[stage.name][number]
    head = Snapshot(
        application=plan.application,
        stage=stage.name,
        partition=number,
        offset=offset,
        root=offset,
        round=offset,
        now_ns=own.log_ns,
        delivery=own.delivery,
        counters=_counters(old, number, new.partitions),
        accounts=_accounts(old, number, new.partitions),
        references=_references(old),
        generation=new.generation,
    )
    if own.clock is not None:
        head.event_clock.CopyFrom(own.clock)
    known = {
        partition_origin(stage_producer(target, stage.name), number): to for target, to in _targets(stage)
    }
    if number < len(old):
        head.sent.extend(each for each in old[number].sent if each.origin not in known)
    for origin, to in known.items():
        sequence = tables[to].highest.get(origin, NO_SEQUENCE)
        if sequence:
            head.sent.extend(
                Sent(origin=origin, partition=each, sequence=sequence) for each in range(new.partitions)
            )
    if own.clock is not None and own.log_ns:
        _downstream_watermarks(head, stage, tables, new.partitions)
    return head


def _downstream_watermarks(
    head: Snapshot, stage: Stage, tables: Mapping[str, _StageTables], partitions: int
) -> None:
    """Adds what the next stages know of this partition: see `event_clocks`."""
    for target, to in _targets(stage):
        if (clock := tables[to].clock) is not None:
            origin = partition_origin(stage_producer(target, stage.name), head.partition)
            for each in range(partitions):
                head.event_clock.downstream.add(
                    origin=origin, partition=each, watermark_ns=clock.watermark_ns, log_ns=head.now_ns
                )


def _counters(old: Sequence[Snapshot], number: int, partitions: int) -> Counters:
    found = Counters()
    for each in old[number::partitions]:
        _add(each.counters, to=found)
    return found


def _accounts(old: Sequence[Snapshot], number: int, partitions: int) -> Accounts | None:
    """None where nothing was ever folded, or an old partition has none, or one of another shape."""
    kept = [each.accounts for each in old if each.HasField("accounts")]
    folded = sum(each.offset > 0 for each in old)
    if not kept or len(kept) < folded or len({each.shape for each in kept}) > 1:
        return None
    found = Accounts(since=max(each.since for each in kept), shape=kept[0].shape)
    for part in ("inputs", "computations", "outputs"):
        for account in getattr(kept[0], part):
            getattr(found, part).add(name=account.name)
        for each in (snapshot.accounts for snapshot in old[number::partitions]):
            for account, more in zip(getattr(found, part), getattr(each, part), strict=False):
                _add(more, to=account)
    return found


def _add(more: Counters | Account, *, to: Counters | Account) -> None:
    """Adds the integer fields of a protobuf message to those of another one."""
    for field, value in more.ListFields():
        if isinstance(value, int):
            setattr(to, field.name, getattr(to, field.name) + value)


def _references(old: Sequence[Snapshot]) -> list[ReferenceVersion]:
    newest: dict[str, ReferenceVersion] = {}
    for each in (version for snapshot in old for version in snapshot.references):
        known = newest.get(each.series)
        if known is None or (each.number, each.fingerprint) > (known.number, known.fingerprint):
            newest[each.series] = each
    return [newest[series] for series in sorted(newest)]
