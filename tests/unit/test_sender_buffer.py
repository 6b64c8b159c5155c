"""When a buffer is full, and when there is room again."""

import asyncio

import pytest

from bettong_sender.buffer import Buffer


def test_a_buffer_is_full_at_its_bound_until_an_eighth_is_free() -> None:
    buffer = Buffer(800)
    seen = []
    for size in (799, 1, -99, -1):
        buffer.add(size) if size > 0 else buffer.remove(-size)
        seen.append((buffer.bytes, buffer.is_full))
    assert seen == [(799, False), (800, True), (701, True), (700, False)]


def test_a_buffer_that_asks_for_one_free_byte_has_room_below_its_bound() -> None:
    buffer = Buffer(800, free_bytes=1)
    buffer.add(900)
    buffer.remove(100)
    assert buffer.is_full
    buffer.remove(1)
    assert not buffer.is_full


@pytest.mark.parametrize(("free_bytes", "freed"), [(None, 100), (1, 1)])
def test_who_waits_for_room_goes_on_once_enough_is_free(free_bytes: int | None, freed: int) -> None:
    async def conversation() -> None:
        buffer = Buffer(800, free_bytes=free_bytes)
        await asyncio.wait_for(buffer.room(), 60)
        buffer.add(800)
        waiting = asyncio.create_task(buffer.room())
        await asyncio.sleep(0)
        buffer.remove(freed - 1)
        await asyncio.sleep(0)
        assert not waiting.done()
        buffer.remove(1)
        await asyncio.wait_for(waiting, 60)

    asyncio.run(conversation())
