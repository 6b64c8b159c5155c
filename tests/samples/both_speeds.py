"""Windows over columns beside the same in plain Python: what tests of both speeds share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from bettong.application.windows.kinds import Counts, Ephemeral, WindowKind
from bettong.frames.frame import tick_record
from bettong.identifiers import Origin
from bettong.v1.frame_pb2 import DeadLetter
from bettong.worker.balance import balance, differences
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import StageProgram
from tests.samples.lateness import Client
from tests.samples.worker import dead_letters, fold, results, worker

LATES = ["drop", "fire", "oldest", "side"]
# Windows of which a key has one at a time.
GROUPS: list[WindowKind] = [
    Counts(3, 40),
    Counts(1, 25),
    Counts(2, None),
    Ephemeral(12, 0),
    Ephemeral(9, 20),
    Ephemeral(25, 50),
]
# Each a shop, how far its time is ahead of the watermark, and by how much the watermark rises behind it.
STEPS = st.lists(
    st.tuples(st.integers(1, 3), st.integers(-40, 60), st.integers(-9, 25)), min_size=1, max_size=50
)


def fitting_late(kind: WindowKind, late: str) -> str:
    """The same, or what such windows have in its place."""
    is_none = isinstance(kind, Counts) or (isinstance(kind, Ephemeral) and late == "oldest")
    return "drop" if is_none else late


def fitting_cases(kinds: Sequence[WindowKind]) -> list[tuple[WindowKind, str]]:
    """Each with what may become of late messages."""
    return [(kind, late) for kind in kinds for late in LATES if fitting_late(kind, late) == late]


def untimed(letter: DeadLetter) -> str:
    """A dead letter without the log clock, which depends on how messages are batched into frames."""
    message = letter.message.partition(b',"timer":"timeout"')[0] if letter.fired else letter.message
    return f"{message!r} {letter.reason} {letter.fired}"


def without_end(kind: WindowKind) -> bool:
    """Whether what is open never closes by itself."""
    return isinstance(kind, Counts) and kind.timeout_ns is None


def same(python: PartitionWorker, compiled: PartitionWorker, value: bytes) -> list[OutputRecord]:
    """What a record leads to, in both speeds."""
    found = fold(python, [value])
    assert fold(compiled, [value]) == found
    assert compiled.counters == python.counters
    assert compiled.accounts.now() == python.accounts.now()
    assert not differences(balance({python.id: python.accounts.now()}, is_at_rest=True))
    assert compiled.keys == python.keys
    return found


def frames_of(
    steps: Sequence[tuple[int, int, int]], sizes: Sequence[int], made: Callable[[int, int, int], Any]
) -> Iterator[tuple[list[Any], int]]:
    """Frames of several messages, each with the watermark behind it: messages are judged by the one before.

    `made`: a message of a shop, a time and a number.
    """
    watermark_ns, taken = 0, 0
    for size in sizes:
        messages = list[Any]()
        for shop, ahead_ns, forward_ns in steps[taken : taken + size]:
            messages.append(made(shop, max(0, watermark_ns + ahead_ns), taken + len(messages)))
            watermark_ns += max(0, forward_ns) // size
        taken += size
        if not messages:
            return
        yield messages, watermark_ns


def one_by_one(found: Sequence[tuple[int, int]], made: Callable[[int, int, int], Any]) -> list[Any]:
    """Messages, each of a shop and so far ahead of the newest time before it."""
    messages, newest_ns = list[Any](), 0
    for number, (shop, ahead_ns) in enumerate(found):
        messages.append(made(shop, max(0, newest_ns + ahead_ns), number))
        newest_ns = max(newest_ns, messages[-1].at)
    return messages


def folded(
    client: Client, of: StageProgram, parts: Sequence[Sequence[Any]], partitions: int, *, end_ns: int
) -> tuple[list[OutputRecord], list[PartitionWorker]]:
    """All that frames of these messages lead to; every partition hears of the client's watermark, and of the end."""
    workers = [worker(of, partition=each, partitions=partitions) for each in range(partitions)]
    records, newest_ns = list[OutputRecord](), 0
    for number, part in enumerate(parts, 1):
        for partition, value in client.send(list(part), 1000 + number):
            records += fold(workers[partition], [value])
        newest_ns = max(newest_ns, *(each.at for each in part))
        tick = tick_record("in", 1000 + number, {Origin("in/a"): newest_ns})
        records += [record for each in workers for record in fold(each, [tick])]
    end = tick_record("in", 10_000, {Origin("in/a"): end_ns})
    records += [record for each in workers for record in fold(each, [end])]
    assert sum(each.keys for each in workers) == 0
    return records, workers


def parts_of(messages: Sequence[Any], cuts: Collection[int]) -> list[list[Any]]:
    """The messages in parts: another begins at each of these indexes."""
    starts = sorted({0, *(cut for cut in cuts if cut < len(messages))})
    return [list(messages[start:stop]) for start, stop in pairwise([*starts, len(messages)])]


def outcome_of(
    found: tuple[list[OutputRecord], list[PartitionWorker]],
    given: tuple[str, type[Any]],
    late: tuple[str, type[Any]],
) -> tuple[Any, ...]:
    """All that comes out of what was folded, in no order. `given` and `late`: topics, and what is in them."""
    records, workers = found
    return (
        *(Counter(map(repr, results(records, *each))) for each in (given, late)),
        Counter(map(untimed, dead_letters(records))),
        sum(each.counters.late for each in workers),
        sum(each.counters.partly_late for each in workers),
    )
