"""Watches requests that have come in part, and closes the connections that hold too much of them."""

import asyncio
import threading
import time

from bettong.edges.grpc_server.connections import hang_up, received_bytes
from bettong.edges.grpc_server.receiving import Receiving
from bettong.logs import Logger

# Between two polls a network of 10 Gbit/s brings 25 MB, this machine itself some more. A poll takes 20 us a
# connection, a twentieth of a core at most.
_POLL_S = 0.02
_POLL_TIMES = 20
# While all sessions together could not hold too much.
_IDLE_POLL_S = 5.0


async def watch(receiving: Receiving, log: Logger) -> None:
    """Closes the connections that hold most before they are read while that is too much, until it is cancelled."""
    over = threading.Event()
    try:
        # A thread of its own: the event loop is at its busiest when much comes in.
        await asyncio.to_thread(_watch, receiving, over, log)
    finally:
        over.set()
        receiving.crowded.set()


def _watch(receiving: Receiving, over: threading.Event, log: Logger) -> None:
    wait_s = 0.0
    while not over.wait(wait_s):
        receiving.crowded.wait(_IDLE_POLL_S)
        begun_s = time.thread_time()
        for peer, excess in receiving.connections_to_close(received_bytes).items():
            hang_up(peer)
            log.warning(
                "connection closed: its messages are incomplete or wait, and there is no memory for more",
                peer=peer,
                bytes=excess.held,
                bound=excess.bound,
            )
        wait_s = max(_POLL_S, _POLL_TIMES * (time.thread_time() - begun_s))
