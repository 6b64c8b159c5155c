"""Nexmark 6 by PyFlink: in SQL nothing goes over the last ten rows of updates, so these are functions with timers."""

import json
from bisect import insort
from collections.abc import Iterator
from typing import Any

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

from benchmarks.peers.flink.flow import BYTES, environment, events, results
from benchmarks.peers.nexmark.bidding import Row, arrival, best_offer, won
from benchmarks.peers.nexmark.rules import MS_NS

AUCTIONS = 10
PICKLED = Types.PICKLED_BYTE_ARRAY()


class WinningBids(KeyedProcessFunction):
    """Of an auction, when event time is past its end."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """See KeyedProcessFunction."""
        self._bidding = runtime_context.get_state(ValueStateDescriptor("bidding", PICKLED))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> None:
        """An auction, or a bid for it, which waits until there can be no auction for it."""
        auction, offers = arrival(value, self._bidding.value() or (None, []))
        due_ns = value["at"] if auction is None else auction["expires"]
        ctx.timer_service().register_event_time_timer(due_ns // MS_NS)
        self._bidding.update((auction, offers if auction is None else best_offer(auction, offers)))

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Row]:  # noqa: ARG002
        """The auction is over, or bids are too old."""
        auction, offers = self._bidding.value() or (None, [])
        if auction is not None and auction["expires"] // MS_NS > timestamp:
            return
        left = [each for each in offers if each[1] // MS_NS > timestamp] if auction is None else []
        if left:
            self._bidding.update((None, left))
        else:
            self._bidding.clear()
        if auction is not None:
            yield from (won(auction, each) for each in offers)


class SellerAverages(KeyedProcessFunction):
    """Of a seller's last auctions, in the order in which they were over."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """See KeyedProcessFunction."""
        self._sales = runtime_context.get_state(ValueStateDescriptor("sales", PICKLED))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> None:
        """Waits for those that were over before it."""
        last, waiting = self._sales.value() or ([], [])
        insort(waiting, (value["closed"] // MS_NS, value["auction"], value["price"]))
        self._sales.update((last, waiting))
        ctx.timer_service().register_event_time_timer(value["closed"] // MS_NS)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[bytes]:
        """Those that were over until now."""
        last, waiting = self._sales.value()
        while waiting and waiting[0][0] <= timestamp:
            last = [*last, waiting.pop(0)[2]][-AUCTIONS:]
            yield json.dumps({"seller": ctx.get_current_key(), "price": sum(last) / len(last)}).encode()
        self._sales.update((last, waiting))


def row(message: bytes) -> Row:
    """A JSON object."""
    found: Row = json.loads(bytes(message))
    return found


def auction_of(arrived: Row) -> Any:
    """Of an auction, or of a bid for one."""
    return arrived["id"] if "item" in arrived else arrived["auction"]


def main() -> None:
    """Runs until the process is ended."""
    flow = environment()
    arrived = events(flow, "auctions").union(events(flow, "bids")).map(row, PICKLED)
    winning = arrived.key_by(auction_of, Types.LONG()).process(WinningBids(), PICKLED)
    averages = winning.key_by(lambda sale: sale["seller"], Types.LONG()).process(SellerAverages(), BYTES)
    averages.sink_to(results())
    flow.execute("nexmark-sellers")
