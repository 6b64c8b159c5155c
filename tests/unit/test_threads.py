"""A thread that lives as long as a block."""

import threading

from bettong.threads import BlockThread


class Deaf(BlockThread):
    """Works until it is told to end, and then on until it may."""

    def __init__(self, *, close_s_max: float) -> None:
        super().__init__("deaf", close_s_max=close_s_max)
        self.works, self.may_end, self.ended = threading.Event(), threading.Event(), threading.Event()

    def _run(self) -> None:
        self.works.set()
        self._stopping.wait()
        self.may_end.wait()
        self.ended.set()


def test_it_works_from_entering_to_leaving() -> None:
    with Deaf(close_s_max=30.0) as thread:
        assert thread.works.wait(30.0)
        thread.may_end.set()
        assert not thread.ended.is_set()
    assert thread.ended.is_set()


def test_who_leaves_does_not_wait_for_one_that_does_not_end() -> None:
    with Deaf(close_s_max=0.01) as thread:
        pass
    assert not thread.ended.is_set()
    thread.may_end.set()
    assert thread.ended.wait(30.0)
