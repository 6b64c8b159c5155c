"""Which subscribers are disconnected for lack of memory, and when."""

import asyncio
import contextlib
from collections.abc import Callable

from bettong_receiver.room import ConnectedSubscriber, Room


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


async def subscriber(room: Room) -> ConnectedSubscriber:
    """A subscriber whose task waits, and which is removed when its task is cancelled."""

    async def stay() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            room.remove(found)

    found = room.add(asyncio.create_task(stay()), "raw", "ipv4:10.0.0.1:5")
    await asyncio.sleep(0)
    return found


def in_a_room(work: Callable[[Room, Clock], "asyncio.Future[None]"], *, bytes_max: int = 100) -> None:
    async def run() -> None:
        clock = Clock()
        await work(Room(readers_max=2, bytes_max=bytes_max, stall_s=30, clock_s=clock), clock)

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_subscriber_that_stalls_for_too_long_is_disconnected_and_others_are_not() -> None:
    async def work(room: Room, clock: Clock) -> None:
        stalled, reading, idle = [await subscriber(room) for _ in range(3)]
        room.write_begun(stalled)
        clock.now_s += 15
        room.write_begun(reading)
        clock.now_s += 16
        watching = asyncio.create_task(room.watch())
        with contextlib.suppress(asyncio.CancelledError):
            await stalled.task
        watching.cancel()
        assert stalled.reason == "has not read for 30 s"
        assert not stalled.must_disconnect.is_set()
        assert [each.reason for each in (reading, idle)] == ["", ""]

    in_a_room(work)  # type: ignore[arg-type]


def test_memory_is_reserved_up_to_the_bound() -> None:
    async def work(room: Room, clock: Clock) -> None:
        del clock
        first, second = [await subscriber(room) for _ in range(2)]
        await room.reserve(first, 60)
        await room.reserve(second, 30)
        await room.reserve(second, 40)
        assert room.held == 100

    in_a_room(work)  # type: ignore[arg-type]


def test_at_the_bound_the_longest_stalled_subscriber_is_disconnected() -> None:
    async def work(room: Room, clock: Clock) -> None:
        older, newer, reading = [await subscriber(room) for _ in range(3)]
        for each in (older, newer):
            await room.reserve(each, 50)
            room.write_begun(each)
            clock.now_s += 5
        await room.reserve(reading, 50)
        assert older.reason == "has not read for 10 s while others need its memory"
        assert older.must_disconnect.is_set()
        assert newer.reason == ""
        assert room.held == 100

    in_a_room(work)  # type: ignore[arg-type]


def test_as_many_are_disconnected_at_once_as_free_enough_memory_and_no_more() -> None:
    async def work(room: Room, clock: Clock) -> None:
        stalled = [await subscriber(room) for _ in range(8)]
        for each in stalled:
            each.held = 40
            room.write_begun(each)
            clock.now_s += 1
        reading = await subscriber(room)
        waiting = asyncio.create_task(room.reserve(reading, 40))
        await asyncio.sleep(0)
        assert [bool(each.reason) for each in stalled] == [True] * 7 + [False]
        await waiting
        assert room.held == 80

    in_a_room(work)  # type: ignore[arg-type]


def test_there_is_no_room_for_another_subscriber_when_all_read() -> None:
    async def work(room: Room, clock: Clock) -> None:
        assert room.has_room_for(1_000_000)
        reading = await subscriber(room)
        await room.reserve(reading, 90)
        assert room.has_room_for(10)
        assert not room.has_room_for(11)
        room.write_begun(reading)
        assert not room.has_room_for(11), "its response is being sent"
        clock.now_s += 1
        assert room.has_room_for(11)

    in_a_room(work)  # type: ignore[arg-type]


def test_a_subscriber_that_may_only_be_slow_gets_a_second() -> None:
    async def work(room: Room, clock: Clock) -> None:
        slow, other = [await subscriber(room) for _ in range(2)]
        await room.reserve(slow, 90)
        room.write_begun(slow)
        waiting = asyncio.create_task(room.reserve(other, 90))
        clock.now_s += 0.5
        await asyncio.wait((waiting,), timeout=0.5)
        assert not waiting.done()
        assert slow.reason == ""
        room.write_ended(slow)
        room.remove(slow)
        await waiting

    in_a_room(work)  # type: ignore[arg-type]


def test_a_single_subscriber_may_exceed_the_bound() -> None:
    async def work(room: Room, clock: Clock) -> None:
        del clock
        await room.reserve(await subscriber(room), 1_000_000)

    in_a_room(work)  # type: ignore[arg-type]


def test_a_subscriber_waits_for_the_thread_of_one_that_has_left() -> None:
    async def work(room: Room, clock: Clock) -> None:
        del clock
        first, second, third = [await subscriber(room) for _ in range(3)]
        for each in (first, second):
            assert await room.await_reader(each, 10, unless=lambda: False)
        waiting = asyncio.create_task(room.await_reader(third, 10, unless=lambda: False))
        closed = room.reader_left(first)
        room.remove(first)
        await asyncio.sleep(0)
        assert not waiting.done()
        assert (room.readers, room.held, room.closing) == (2, 20, 10)
        closed()
        assert await waiting
        assert (room.readers, room.held, room.closing) == (2, 20, 0)

    in_a_room(work)  # type: ignore[arg-type]


def test_a_subscriber_waits_for_the_memory_of_one_that_has_left() -> None:
    async def work(room: Room, clock: Clock) -> None:
        del clock
        first, second = [await subscriber(room) for _ in range(2)]
        assert await room.await_reader(first, 60, unless=lambda: False)
        closed = room.reader_left(first)
        room.remove(first)
        assert room.has_room_for(60), "it will be free soon"
        waiting = asyncio.create_task(room.await_reader(second, 60, unless=lambda: False))
        await asyncio.sleep(0)
        assert not waiting.done()
        closed()
        assert await waiting

    in_a_room(work)  # type: ignore[arg-type]


def test_a_subscriber_waits_for_no_reader_of_a_receiver_that_stops() -> None:
    async def work(room: Room, clock: Clock) -> None:
        del clock
        for each in [await subscriber(room) for _ in range(2)]:
            assert await room.await_reader(each, 10, unless=lambda: False)
        assert not await room.await_reader(await subscriber(room), 10, unless=lambda: True)
        assert room.readers == 2

    in_a_room(work)  # type: ignore[arg-type]
