"""What was refused goes with its session: nothing that lives longer leads to it, nor does it lead to itself."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from bettong.ingest.refusal import Refusal
from bettong.v1.ingest_pb2 import IngestFrame, IngestRequest
from bettong_sender import feed as feeds
from bettong_sender.answers import Log
from bettong_sender.feed import Feed
from bettong_sender.intake import Intake
from bettong_sender.status import SenderStatus
from tests.samples.sender import route
from tests.unit.test_sender_intake import CERTAIN, LIMITS, Gate, SilentLog, gated, opened, request

NO_COLUMNS = IngestRequest(frame=IngestFrame(sequence=1, columns=b"no columns")).SerializeToString()


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Only what nothing leads to goes."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def refused(intake: Intake, data: bytes) -> weakref.ref[Feed]:
    """A session that sends a frame which is refused; it has ended."""
    feed = await opened(intake, "feed-1", "1.2.3.4")
    try:
        await feed.take_request(data, CERTAIN)
        while await feed.receipt() is not None:
            pass
    except Refusal as refusal:
        refusal.__traceback__ = None  # as the servicer does
    finally:
        feed.close()
    return weakref.ref(feed)


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize(
    ("log", "data"),
    [
        pytest.param(SilentLog(), NO_COLUMNS, id="columns of no schema"),
        pytest.param(SilentLog(), b"no request", id="no request"),
        pytest.param(SilentLog(takes=1), request(1, b"x"), id="the log takes nothing"),
    ],
)
def test_a_session_with_a_refused_frame_is_freed_without_the_garbage_collector(
    log: Log, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "RECEIPTS_WAIT_S", 0.05)

    async def conversation() -> bool:
        intake = Intake(
            "shop", {"orders": route(gated(Gate()))}, LIMITS, SenderStatus(since_s=1), clock=lambda: 1
        )
        intake.use(log, {})
        found = await refused(intake, data)
        for _ in range(100):
            if found() is None:
                break
            await asyncio.sleep(0.05)
        intake.close()
        return found() is None

    assert asyncio.run(asyncio.wait_for(conversation(), 60))
