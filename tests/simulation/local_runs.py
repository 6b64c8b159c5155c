"""Runs a graph with `local` in place of `key_by`, and holds it to the same graph without, which the interpreter says.

The frames that travel are the same ones, with fewer rows. So a seed decides alike in both runs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from bettong.errors import PoisonError
from bettong.worker.kernel import KernelCache
from tests.simulation.graph_runs import GraphRun, Stop, check
from tests.simulation.local_graphs import names_without, with_local
from tests.simulation.random_graphs import Case

# Fewer messages travel, and not in as many records as there are windows.
_ALIKE = ("dead_letters", "skipped", "late", "partly_late", "expired")


def check_with_local(case: Case, *, cache: KernelCache | None = None) -> bool:
    """As `check`, and with `local` where it can be; whether there was such a place."""
    plain = check(case, cache=cache)
    graph = with_local(case.graph)
    if plain is None or graph is None:
        return False
    local = _LocalRun(replace(case, graph=graph), cache)
    local.fold_all()
    assert _ends(local) == _ends(plain), "other frames travelled"
    found, expected = local.delivered, plain.delivered
    assert found.results == expected.results, f"gave {found.results}, not {expected.results}"
    names = names_without(graph)
    dead = Counter((names.get(of, of), *more) for of, *more in found.dead_letters.elements())
    assert dead == expected.dead_letters, f"dead letters {dead}, not {expected.dead_letters}"
    for name in _ALIKE:
        assert found.counters[name] == expected.counters[name], name
    return True


class _LocalRun(GraphRun):
    """Beside no interpreter, which knows nothing of what is combined."""

    def fold(self, stage: str, partition: int, value: bytes) -> None:
        living, _ = self.partitions[stage, partition]
        living.die()
        try:
            records = living.fold(value)
        except PoisonError as error:
            raise Stop from error
        self.pass_on(stage, partition, records)


def _ends(run: GraphRun) -> list[int]:
    return [living.worker.next_offset for living, _ in run.partitions.values()]
