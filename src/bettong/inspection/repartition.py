"""Checks whether the number of partitions of an application can be changed. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bettong.delivery import is_client
from bettong.errors import LogError, NotAtRestError
from bettong.identifiers import Origin, PartitionId, SequenceNumber, stream_of
from bettong.listing import first_named, first_texts
from bettong.metrics import AGE_S, TTL_S
from bettong.snapshots.partitioning import Partitioning
from bettong.v1.snapshot_pb2 import Snapshot
from bettong.worker.repartitioning.delivery import Unsettled, lost_frames, unsettled

_NAMED_MAX = 4
# More than of others, because the operator has to find each client.
_CLIENTS_NAMED_MAX = 200


@dataclass(frozen=True, slots=True)
class FoldedTo:
    """Up to which offset a partition is saved, and where its log ends."""

    saved: int
    end: int


def present(kept: Partitioning | None, counts: Mapping[str, int]) -> Partitioning:
    """The current partitioning. `counts`: of each topic that the application's file has now.

    Raises LogError where the counts differ, or where the file has topics that do not exist. A switched change is
    returned without these checks: see `check_stages`.
    """
    if kept is not None and kept.change is not None and kept.change.switched:
        return kept
    if missing := sorted(topic for topic, count in counts.items() if not count):
        raise LogError(_missing(missing, kept, has_run=kept is not None or len(missing) < len(counts)))
    if kept is not None:
        return kept
    numbers = set(counts.values())
    if len(numbers) > 1:
        found = ", ".join(f"{topic} {count}" for topic, count in sorted(counts.items()))
        raise LogError(
            f"its topics differ in their partitions ({found}), expected one number; start the application, which"
            " reports what is wrong with them"
        )
    return Partitioning(0, numbers.pop())


def _missing(topics: Sequence[str], kept: Partitioning | None, *, has_run: bool) -> str:
    if not has_run:
        return (
            f"topics {_named(topics)} do not exist: the application has never run here; start it with the number of"
            " partitions that it shall have"
        )
    if kept is not None and kept.change is not None:
        remedy = "resume with the file that it ran with, or undo the change with --back"
    else:
        remedy = (
            "start it once with this file, which creates them, and stop it; or give the file that it ran with"
        )
    return f"topics {_named(topics)} do not exist: the application's file has changed since it ran here; {remedy}"


def check_stages(switched: Partitioning, stages: Iterable[str]) -> None:
    """Raises LogError where the application has other stages than when it switched."""
    before, now = sorted(switched.begins), sorted(stages)
    if before != now:
        raise LogError(
            f"the application had stages {', '.join(before)} when it was switched to {switched.partitions} partitions,"
            f" its file has {', '.join(now)}: finish that with the file that it was begun with"
        )


def check_none_left_out(logs: Iterable[str], stages: Iterable[str]) -> None:
    """Raises LogError where a stage has a log and is not in the file: its states would not be divided anew.

    `logs`: the stages that have one; `stages`: those of the file.
    """
    if left_out := sorted(set(logs) - set(stages)):
        raise LogError(
            f"stages {_named(left_out)} have logs, but are not in the application's file: should they return, their"
            " states would be partitioned differently from their messages. Give the file that has them; or, if they"
            " never return, delete their topics"
        )


def silent_in_s(live: Mapping[str, Mapping[str, str]]) -> float:
    """How long until all live records expire, unless they are renewed."""
    return max((float(each[TTL_S]) - float(each.get(AGE_S, 0)) for each in live.values()), default=0.0)


def speak(
    before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]], *, after_s: float
) -> list[str]:
    """The instances that have renewed their record since: it is new, or has aged less than the time that passed."""
    return sorted(
        name
        for name, each in now.items()
        if name not in before or float(each.get(AGE_S, 0)) < float(before[name].get(AGE_S, 0)) + after_s / 2
    )


def check_change(now: Partitioning, application: str, to: int) -> None:
    """Raises LogError where another change than that to `to` partitions is under way."""
    if now.change is None:
        return
    target = now.partitions if now.change.switched else now.change.partitions
    if target != to:
        how = (
            f"finish it with --partitions {target} first, then change it again"
            if now.change.switched
            else f"finish it with --partitions {target}, or undo it with --back, first"
        )
        raise LogError(
            f"application {application!r} is being changed to {target} partitions already, not {to}: {how}"
        )


def overtaken(found: Partitioning | None, application: str) -> str:
    """The error of a run that another run has overtaken."""
    return (
        f"another `bettong repartition` of application {application!r} runs at the same time, or has undone this one:"
        f" {_state_of(found)}. This run ends, and nothing is lost; see that no other one runs, and run it again if"
        " necessary"
    )


def _state_of(found: Partitioning | None) -> str:
    if found is None:
        return "its record is gone"
    if found.change is None:
        return f"the application has {found.partitions} partitions, and no change is under way"
    if found.change.switched:
        return f"the application has switched to {found.partitions} partitions"
    return f"the application is being changed to {found.change.partitions} partitions"


def check_stopped(running: Collection[str], application: str) -> None:
    """Raises NotAtRestError while anything of the application runs."""
    if running:
        raise NotAtRestError(
            f"{_named(sorted(running))} of {application!r} runs: stop senders first, then, when nothing is left to fold"
            " (`bettong status`), everything else; and try again"
        )


def check_folded(found: Mapping[PartitionId, FoldedTo]) -> None:
    """Raises NotAtRestError unless every partition is saved up to the end of its log."""
    behind = {id_: each for id_, each in found.items() if each.saved != each.end}
    if behind:
        named = [
            f"stage {id_.stage!r}, partition {id_.partition}: saved up to offset {each.saved}, its log ends at"
            f" {each.end}"
            for id_, each in sorted(behind.items())
        ]
        raise NotAtRestError(
            f"{first_texts(named, _NAMED_MAX)}. Start the application without clients until nothing is left to fold"
            " (`bettong status`: lag 0), stop it, and try again"
        )


def check_complete(
    heads: Mapping[str, Sequence[Snapshot]],
    acknowledged: Mapping[Origin, SequenceNumber],
    given_up: Collection[str],
) -> None:
    """Raises NotAtRestError while frames may have arrived in part, or where an unknown client is given up.

    `heads`: of each stage, of all its partitions. `given_up`: clients, or `SOURCE/*` for all of a source.
    """
    known = {name for origin in origins_of(heads) if is_client(origin) for name in _names_of(origin)}
    if strange := sorted(set(given_up) - known):
        raise NotAtRestError(
            f"--give-up {_named(strange)}: no stage knows it; name SOURCE/STREAM as the refusal does, or SOURCE/*"
        )
    waiting: list[Unsettled] = []
    for stage, snapshots in heads.items():
        tables = [each.delivery for each in snapshots]
        if lost := lost_frames(tables):
            raise NotAtRestError(
                f"stage {stage!r} waits for a lost frame of {_named(lost)}: start the application, which sends it"
                " again, stop it, and try again"
            )
        waiting += unsettled(tables, acknowledged)
    waiting = [each for each in waiting if not _names_of(each.origin) & set(given_up)]
    if waiting:
        clients = [f"{each.origin} (frames {each.complete + 1} to {each.highest})" for each in waiting]
        named = first_named(clients, _CLIENTS_NAMED_MAX)
        raise NotAtRestError(
            f"it is not known whether the last frames of {len(waiting)} clients have arrived completely: {named}."
            " Redis remembers that for 48 hours. Start the application, let each of them send a frame, its last one"
            " again or a new one, stop it, and try again. For a client that never returns, or whose frames were all"
            " acknowledged: --give-up SOURCE/STREAM, or SOURCE/* for all of a source; its frames up to there, sent"
            " again, then count as taken"
        )


def _names_of(origin: Origin) -> set[str]:
    """The values of --give-up that name a client."""
    return {origin, f"{stream_of(origin)}/*"}


def origins_of(heads: Mapping[str, Sequence[Snapshot]]) -> set[Origin]:
    """All origins that any partition knows."""
    return {
        Origin(heard.origin)
        for snapshots in heads.values()
        for each in snapshots
        for heard in each.delivery.heard
    }


def _named(names: Iterable[str]) -> str:
    return first_named(list(names), _NAMED_MAX)
