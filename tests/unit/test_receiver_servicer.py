"""Garbage of a subscriber that has left is collected, although it is in Python's oldest generation."""

import asyncio
import gc
import weakref
from typing import Any, cast

import pytest
import structlog

from bettong_receiver import servicer as servicing
from bettong_receiver.servicer import SubscribeServicer


class Ring:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.own = self


async def _freed(*, is_left: bool) -> bool:
    servicer = SubscribeServicer(
        {},
        subscribers_max=1,
        shares=cast("Any", None),
        bytes_max=1,
        ahead_bytes_max=1,
        stall_s=60.0,
        open_admin=cast("Any", None),
        open_reader=cast("Any", None),
        log=structlog.get_logger(),
    )
    ring = weakref.ref(Ring())
    watching = asyncio.create_task(servicer.watch())
    if is_left:
        servicer._left.set()
    for _ in range(10):
        await asyncio.sleep(0)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    return ring() is None


@pytest.mark.parametrize("is_left", [True, False], ids=["a subscriber has left", "none has"])
def test_all_generations_are_collected_when_a_subscriber_has_left(
    *, is_left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servicing, "_COLLECT_S", 0.0)
    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(_freed(is_left=is_left)) is is_left
    finally:
        gc.enable()
