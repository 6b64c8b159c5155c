"""Partitions report what event time waits for: written, read again, and ignored where it is garbage."""

from __future__ import annotations

from io import StringIO

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bettong import metrics
from bettong.cli.watermark_texts import show_watermarks, window_texts
from bettong.event_progress import DueComputation, DueKind, EventProgress, InputProgress
from bettong.identifiers import Origin, PartitionId
from bettong.inspection.open_windows import OpenWindow, open_windows
from bettong.inspection.overview import PartitionRow, partition_rows
from bettong.worker.watermarks import INSPECTED_MAX, Watermarks


def test_a_record_of_an_older_worker_or_of_garbage_says_nothing() -> None:
    for text in (
        "",
        "{}",
        "[]",
        "null",
        '{"log":"x","inputs":[],"due":[]}',
        '{"log":1,"inputs":[[1]],"due":[]}',
    ):
        (found,) = partition_rows({}, {PartitionId("s", 0): {metrics.EVENT_PROGRESS.name: text}})
        assert found.event_progress is None
        assert open_windows([found], 5) == ()


NAMES = st.text(max_size=8)
ORIGINS = NAMES.map(Origin)
TIMES = st.integers(-(2**63), 2**63 - 1)
INPUTS = st.builds(InputProgress, NAMES, *[st.integers(0, 9)] * 2, ORIGINS, *[TIMES] * 3, st.none() | TIMES)
DUES = st.builds(DueComputation, NAMES, st.sampled_from(DueKind), TIMES, st.none() | TIMES, st.none() | TIMES)


@given(
    st.builds(
        EventProgress, TIMES, st.lists(INPUTS, max_size=4).map(tuple), st.lists(DUES, max_size=4).map(tuple)
    )
)
def test_what_is_written_is_read_and_any_of_it_is_shown(progress: EventProgress) -> None:
    assert EventProgress.parse(progress.to_text()) == progress
    of = PartitionRow("s", 0, 0, None, 0, 0, None, None, None, event_progress=progress)
    found: tuple[OpenWindow, ...] = open_windows([of], 0)
    assert len(window_texts(found, 0)) == len(found) <= len(progress.due)
    text = StringIO()
    show_watermarks([of], Console(file=text, width=80), 0)
    assert text.getvalue()


def test_of_very_many_origins_the_one_that_holds_is_still_named() -> None:
    of = Watermarks({"in": None})
    for number in range(INSPECTED_MAX + 1):
        of.reach(Origin(f"in/{number}"), 1000 - number % 700)
    (found,) = of.inputs
    assert (found.origin, found.watermark_ns, found.live) == ("in/699", 301, INSPECTED_MAX + 1)
