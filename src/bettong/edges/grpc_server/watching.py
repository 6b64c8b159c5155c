"""Watches partly received messages, and closes the connections that hold too much of them."""

import asyncio
import threading
import time

from bettong.edges.grpc_server.connections import close_connection, received_bytes
from bettong.edges.grpc_server.receiving import Receiving
from bettong.logs import Logger

# Between two polls a network of 10 Gbit/s delivers 25 MB, loopback somewhat more. A poll takes 20 us per connection,
# at most a twentieth of a core.
_POLL_S = 0.02
_POLL_TIMES = 20
# While all sessions together cannot exceed the bounds.
_IDLE_POLL_S = 5.0


async def watch(receiving: Receiving, log: Logger) -> None:
    """Closes the connections with the most unread bytes while these exceed a bound, until it is cancelled."""
    over = threading.Event()
    try:
        # On its own thread, because the event loop is busiest when many bytes arrive.
        await asyncio.to_thread(_watch, receiving, over, log)
    finally:
        over.set()
        receiving.may_exceed_bounds.set()


def _watch(receiving: Receiving, over: threading.Event, log: Logger) -> None:
    wait_s = 0.0
    while not over.wait(wait_s):
        receiving.may_exceed_bounds.wait(_IDLE_POLL_S)
        begun_s = time.thread_time()
        for peer, excess in receiving.connections_to_close(received_bytes).items():
            close_connection(peer)
            log.warning(
                "connection closed: its messages are incomplete or wait, and there is no memory for more",
                peer=peer,
                bytes=excess.held,
                bound=excess.bound,
            )
        wait_s = max(_POLL_S, _POLL_TIMES * (time.thread_time() - begun_s))
