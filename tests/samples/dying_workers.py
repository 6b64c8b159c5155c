"""Workers that die between records, each of which takes over from the increments of the one before."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import StageProgram
from bettong.worker.state.group_tables import CountTable
from tests.samples.worker import fold, worker


def check_deaths(
    of: StageProgram,
    values: Sequence[bytes],
    outputs: Sequence[Any],
    chance: Random,
    *,
    shown: Callable[[list[OutputRecord]], Any] = list,
) -> tuple[PartitionWorker, int]:
    """Raises AssertionError where a record leads to anything but its output, also when it is folded again, or where a
    worker that took over has another state, or is due at another time. Gives the last worker, and how many died.

    `shown`: what is compared of the records that one leads to.
    """
    chain, one, deaths = list[bytes](), worker(of), 0
    for offset, value in enumerate(values):
        assert shown(fold(one, [value])) == outputs[offset]
        if chance.random() < 0.5:
            chain.append(one.increment()[1])
        if chance.random() < 0.7:
            deaths += 1
            whole, due_ns, one = one.snapshot(), one.due_ns, worker(of)
            for each in chain:
                one.restore(each)
            for again in range(one.next_offset, offset + 1):
                assert shown(fold(one, [values[again]])) == outputs[again]
            assert one.snapshot() == whole
            # Of groups that are full before their timeout it is a bound: see LivingPartition.
            assert one.due_ns == due_ns or any(type(table) is CountTable for table in one.tables.values())
    return one, deaths
