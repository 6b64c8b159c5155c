"""What the lifetimes of a table cost where nothing has changed."""

from bettong.worker.state.lifetimes import LogSlotLifetimes


def test_a_batch_without_new_keys_copies_nothing() -> None:
    of = LogSlotLifetimes(10)
    of.grow(1000)
    ring = of._ring
    of.grow(1000)
    assert of._ring is ring
    of.grow(1001)
    assert len(of._ring) == 1002
