"""Nexmark by bytewax: `PEER_QUERY=q5 python -m bytewax.run benchmarks.peers.bytewax.nexmark`."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource, KafkaSourceMessage
from bytewax.dataflow import Dataflow
from bytewax.operators import KeyedStream, Stream
from bytewax.operators.windowing import (
    EventClock,
    SessionWindower,
    TumblingWindower,
    fold_window,
)

from benchmarks.peers.bytewax.flow import BROKERS
from benchmarks.peers.nexmark.bidding import Bidding, average, ranked_bids, winning_bid
from benchmarks.peers.nexmark.days import DAY, DAY_NS, DistinctBids, auction_day, first_price, with_price
from benchmarks.peers.nexmark.queries import QUERIES as ASKED
from benchmarks.peers.nexmark.rules import (
    GAP,
    GAP_NS,
    Row,
    Sides,
    auction_bids,
    channel_bids,
    euro_bid,
    folder_bid,
    local_items,
    new_sellers,
    prices,
    timed_bids,
    valued_bid,
)

EPOCH = datetime.fromtimestamp(0, UTC)
Query = Callable[[Dataflow], Stream[Row]]
# A row that is there once, and those that wait for it.
Waiting = tuple[Row | None, list[Row]]


# Goes on by messages alone; see `windows._CLOCK`. A bidder's bids come in order.
CLOCK = EventClock(
    ts_getter=lambda row: EPOCH + timedelta(microseconds=row["at"] // 1000),
    wait_for_system_duration=timedelta(0),
    now_getter=lambda: EPOCH,
    to_system_utc=lambda _: None,
)


def topic(flow: Dataflow, name: str) -> Stream[Row]:
    """The messages of a topic."""
    records = op.input(name, flow, KafkaSource(BROKERS, [name]))
    return op.flat_map_batch(f"read-{name}", records, read)


def read(records: list[KafkaSourceMessage]) -> list[Row]:
    """JSON objects."""
    return [json.loads(record.value) for record in records]


def by(field: str, rows: Stream[Row]) -> KeyedStream[Row]:
    """The rows by a field."""
    return op.key_on(f"by-{field}", rows, lambda row: str(row[field]))


def bid_by_bid(function: Callable[[Row], list[Row]]) -> Query:
    """A query of single bids."""
    return lambda flow: op.flat_map("query", topic(flow, "bids"), function)


def joined(
    one: KeyedStream[Row], many: KeyedStream[Row], field: str, rows: Callable[[Row, Row], list[Row]]
) -> Stream[Row]:
    """Of rows of which a key has one, and others of which it has many; only the former have the field.

    `op.join` keeps the newest row of each side, so this is a state of both.
    """

    def step(kept: Waiting | None, arrived: Row) -> tuple[Waiting, list[Row]]:
        first, waiting = kept or (None, [])
        if field in arrived:
            return (arrived, []), [found for each in waiting for found in rows(arrived, each)]
        if first is None:
            return (None, [*waiting, arrived]), []
        return (first, []), rows(first, arrived)

    return op.key_rm("rows", op.stateful_flat_map("join", op.merge("sides", one, many), step))


def q3(flow: Dataflow) -> Stream[Row]:
    """A join of two streams."""
    persons, auctions = by("id", topic(flow, "persons")), by("seller", topic(flow, "auctions"))
    return joined(persons, auctions, "state", local_items)


def q8(flow: Dataflow) -> Stream[Row]:
    """A state of both, by the window: a topic that is read ahead would end the windows of `join_window`."""
    persons, auctions = by("id", topic(flow, "persons")), by("seller", topic(flow, "auctions"))
    sides = op.merge("sides", persons, auctions)
    return op.key_rm("rows", op.stateful_flat_map("sellers", sides, on_seller))


def on_seller(kept: Sides | None, arrived: Row) -> tuple[Sides, list[Row]]:
    """A person, or an auction."""
    return new_sellers(arrived, kept or ({}, []))


def winning_bids(flow: Dataflow) -> Stream[Row]:
    """A state of an auction and its bids."""
    auctions, bids = by("id", topic(flow, "auctions")), by("auction", topic(flow, "bids"))
    return op.key_rm("won", op.stateful_flat_map("bidding", op.merge("sides", auctions, bids), on_bidding))


def on_bidding(kept: Bidding | None, arrived: Row) -> tuple[Bidding, list[Row]]:
    """An auction, or a bid for it."""
    return winning_bid(arrived, kept or (None, []))


def q4(flow: Dataflow) -> Stream[Row]:
    """The new average of a category."""
    won = by("category", winning_bids(flow))
    return op.key_rm(
        "rows", op.stateful_map("average", won, lambda sold, each: average(each, sold or (0, 0)))
    )


def q18(flow: Dataflow) -> Stream[Row]:
    """A bid that is later than those of its bidder for its auction."""
    pairs = op.key_on("by-pair", topic(flow, "bids"), lambda bid: f"{bid['bidder']},{bid['auction']}")
    return op.key_rm("rows", op.stateful_flat_map("last", pairs, last_bid))


def last_bid(last_at: int | None, bid: Row) -> tuple[int, list[Row]]:
    """The bid, if it is later than the others."""
    if last_at is not None and bid["at"] <= last_at:
        return last_at, []
    return bid["at"], [bid]


def q19(flow: Dataflow) -> Stream[Row]:
    """The highest bids of an auction."""
    bids = by("auction", topic(flow, "bids"))
    return op.key_rm("rows", op.stateful_flat_map("top", bids, lambda top, bid: ranked_bids(bid, top or [])))


def q11(flow: Dataflow) -> Stream[Row]:
    """Sessions of a bidder; a window knows no times of its own, so they are kept."""
    bids = by("bidder", topic(flow, "bids"))
    sessions = fold_window(
        "sessions", bids, CLOCK, SessionWindower(GAP), lambda: None, extended, merged, ordered=False
    )
    return op.map("rows", sessions.down, bidding_session)


def extended(session: tuple[int, int, int] | None, bid: Row) -> tuple[int, int, int]:
    """With one bid more: first, last, how many."""
    at = bid["at"]
    return merged(session, (at, at, 1)) if session else (at, at, 1)


def merged(left: tuple[int, int, int], right: tuple[int, int, int]) -> tuple[int, int, int]:
    """Both together."""
    return min(left[0], right[0]), max(left[1], right[1]), left[2] + right[2]


def bidding_session(window: tuple[str, tuple[int, tuple[int, int, int]]]) -> Row:
    """The row of a session."""
    bidder, (_, (first, last, bids)) = window
    return {"bidder": int(bidder), "start": first, "end": last + GAP_NS, "bids": bids}


def of_days(bids: KeyedStream[Row], first: Callable[[], Any], with_bid: Callable[[Any, Row], Any]) -> Any:
    """What is kept of each day, with the number of the day."""
    days = TumblingWindower(length=DAY, align_to=EPOCH)
    # A bidder's, a channel's or an auction's bids come in order, so that no two windows are merged.
    return fold_window("days", bids, CLOCK, days, first, with_bid, lambda left, _: left, ordered=False).down


def q16(flow: Dataflow) -> Stream[Row]:
    """Sets of a channel's day."""
    days = of_days(by("channel", topic(flow, "bids")), DistinctBids, DistinctBids.add)
    return op.map("rows", days, lambda day: day[1][1].row(day[0], day[1][0] * DAY_NS))


def q17(flow: Dataflow) -> Stream[Row]:
    """Prices of an auction's day."""
    days = of_days(
        by("auction", topic(flow, "bids")),
        lambda: None,
        lambda prices, bid: with_price(prices, bid) if prices else first_price(bid),
    )
    return op.map("rows", days, lambda day: auction_day(int(day[0]), day[1][0] * DAY_NS, day[1][1]))


def q20(flow: Dataflow) -> Stream[Row]:
    """A join of two streams."""
    auctions, bids = by("id", topic(flow, "auctions")), by("auction", topic(flow, "bids"))
    return joined(auctions, bids, "item", auction_bids)


QUERIES: dict[str, Query] = {
    "q0": lambda flow: topic(flow, "bids"),
    "q1": bid_by_bid(lambda bid: [euro_bid(bid)]),
    "q2": bid_by_bid(prices),
    "q3": q3,
    "q4": q4,
    "q8": q8,
    "q9": winning_bids,
    "q11": q11,
    "q13": bid_by_bid(lambda bid: [valued_bid(bid)]),
    "q14": bid_by_bid(timed_bids),
    "q16": q16,
    "q17": q17,
    "q18": q18,
    "q19": q19,
    "q20": q20,
    "q21": bid_by_bid(channel_bids),
    "q22": bid_by_bid(lambda bid: [folder_bid(bid)]),
}


def result(row: Row) -> KafkaSinkMessage[Any, bytes]:
    """A row as it goes out; updates of a key stay in order."""
    return KafkaSinkMessage(ASKED[QUERY].update_key(list(row.values())), json.dumps(row).encode())


QUERY = os.environ["PEER_QUERY"]
flow = Dataflow("nexmark")
rows = QUERIES[QUERY](flow)
op.output("results", op.map("result", rows, result), KafkaSink(BROKERS, "results"))
