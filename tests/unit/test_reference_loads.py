"""Loads of reference tables take few resources of a process: one at a time for each join, and a slot of Spark."""

import threading

import pytest

from bettong.errors import ReferenceLoadError
from bettong_processor.references.loading import Loads
from bettong_processor.resident.slots import usable


def test_a_load_that_hangs_is_the_only_one_of_its_join_however_often_runs_begin() -> None:
    loads, may_end, begun = Loads(), threading.Event(), threading.Event()

    def hang() -> bytes:
        begun.set()
        may_end.wait(30)
        return b"late"

    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(loads.run_alone("priced", hang)))
    thread.start()
    begun.wait(30)
    for _ in range(3):
        with pytest.raises(ReferenceLoadError, match=r"'priced': an earlier load\(\) has not ended"):
            loads.run_alone("priced", lambda: b"")
    assert loads.run_alone("another", lambda: b"other") == b"other"
    may_end.set()
    thread.join(30)
    assert (found, loads.run_alone("priced", lambda: b"next")) == ([b"late"], b"next")


def test_slots_of_spark_are_kept_free_but_never_all() -> None:
    assert [usable(slots, kept_free=1) for slots in (0, 1, 2, 8)] == [1, 1, 1, 7]
    assert usable(8, kept_free=0) == 8
