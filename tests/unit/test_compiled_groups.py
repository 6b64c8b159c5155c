"""Groups of messages and ephemeral windows over columns: what `test_compiled_windows` does not test of every kind."""

from __future__ import annotations

from random import Random

import pytest

from bettong.application.windows.kinds import Counts, Ephemeral, WindowKind
from tests.samples.both_speeds import same
from tests.samples.compiled_windows import OUT, Sales, ready, sale
from tests.samples.timers import tick as tick_of
from tests.samples.worker import data, dead_letters, results, worker


@pytest.mark.parametrize("kind", [Counts(1, 25), Counts(3, 40)])
def test_a_group_whose_last_message_is_at_the_end_of_all_time_gives_no_result(kind: WindowKind) -> None:
    """Its end is one nanosecond behind that."""
    python, compiled = (worker(ready(kind, "drop", compiled=speed)) for speed in (False, True))
    messages = [sale(1, 2**63 - 1, 1), sale(2, 2**63 - 2, 2), sale(3, 9, 3)]
    found = same(python, compiled, data("in/x", 1, messages, watermark_ns=9))
    found += same(python, compiled, tick_of(50))
    assert len(dead_letters(found)) == 1
    assert len(results(found, OUT, Sales)) == 2


@pytest.mark.parametrize("kind", [Counts(2, 40), Ephemeral(12, 20)])
def test_more_keys_than_there_is_room_for_at_first_in_windows_one_at_a_time(kind: WindowKind) -> None:
    """Many of a key in one frame, too."""
    chance = Random(5)
    python, compiled = (worker(ready(kind, "fire", compiled=speed)) for speed in (False, True))
    found = 0
    for number in range(1, 6):
        sales = [sale(chance.randrange(2000), 5 * number + chance.randrange(9), each) for each in range(3000)]
        frame = data("in/x", number, sales, watermark_ns=5 * number, ingest_ns=15 * number)
        found += len(results(same(python, compiled, frame), OUT, Sales))
    found += len(results(same(python, compiled, tick_of(10**6)), OUT, Sales))
    assert found > 700
    assert compiled.keys == 0
