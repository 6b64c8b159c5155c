"""Nexmark by Quix Streams: `PEER_QUERY=q5 python -m benchmarks.peers.quix.nexmark`."""

import os
from collections.abc import Callable
from typing import Any

from quixstreams import Application, State
from quixstreams.dataframe import StreamingDataFrame
from quixstreams.dataframe.windows.aggregations import Collect, Count, Reduce

from benchmarks.peers.nexmark.bidding import average, ranked_bids, winning_bid
from benchmarks.peers.nexmark.days import DAY, DistinctBids, auction_day, first_price, with_price
from benchmarks.peers.nexmark.rules import (
    GAP,
    GAP_NS,
    MS_NS,
    Row,
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
from benchmarks.peers.quix.application import application

Query = Callable[[Application], StreamingDataFrame]


def topic(app: Application, name: str) -> StreamingDataFrame:
    """The messages of a topic."""
    return app.dataframe(app.topic(name, key_deserializer="str", value_deserializer="json"))


def bid_by_bid(function: Callable[[Row], list[Row]]) -> Query:
    """A query of single bids."""
    return lambda app: topic(app, "bids").apply(function, expand=True)


def joined(
    one: StreamingDataFrame, many: StreamingDataFrame, field: str, rows: Callable[[Row, Row], list[Row]]
) -> StreamingDataFrame:
    """Of rows of which a key has one, and others of which it has many; only the former have the field.

    Quix Streams joins newest values, or within bounds, so this is a state of both.
    """

    def step(arrived: Row, state: State) -> list[Row]:
        first = state.get("first")
        if field in arrived:
            state.set("first", arrived)
            waiting = state.get("waiting", [])
            if waiting:
                state.delete("waiting")
            return [found for each in waiting for found in rows(arrived, each)]
        if first is None:
            state.set("waiting", [*state.get("waiting", []), arrived])
            return []
        return rows(first, arrived)

    return one.concat(many).apply(step, stateful=True, expand=True)


def q3(app: Application) -> StreamingDataFrame:
    """A join of two streams."""
    return joined(topic(app, "persons"), topic(app, "auctions"), "state", local_items)


def q8(app: Application) -> StreamingDataFrame:
    """Quix Streams has no join of windows: a state of both, by the window."""
    return topic(app, "persons").concat(topic(app, "auctions")).apply(on_seller, stateful=True, expand=True)


def on_seller(arrived: Row, state: State) -> list[Row]:
    """A person, or an auction."""
    sides, rows = new_sellers(arrived, state.get("sides", ({}, [])))
    state.set("sides", sides)
    return rows


def winning_bids(app: Application) -> StreamingDataFrame:
    """A state of an auction and its bids."""
    return topic(app, "auctions").concat(topic(app, "bids")).apply(on_bidding, stateful=True, expand=True)


def on_bidding(arrived: Row, state: State) -> list[Row]:
    """An auction, or a bid for it."""
    bidding, rows = winning_bid(arrived, state.get("bidding", (None, [])))
    state.set("bidding", bidding)
    return rows


def q4(app: Application) -> StreamingDataFrame:
    """The new average of a category."""
    won = winning_bids(app).group_by(lambda winning: str(winning["category"]), name="category")
    return won.apply(on_sale, stateful=True)


def on_sale(winning: Row, state: State) -> Row:
    """With an auction more."""
    sold, row = average(winning, state.get("sold", (0, 0)))
    state.set("sold", sold)
    return row


def last_bid(bid: Row, state: State) -> bool:
    """Whether it is later than those of its bidder for its auction, of which the state is."""
    bidder = str(bid["bidder"])
    if bid["at"] <= state.get(bidder, -1):
        return False
    state.set(bidder, bid["at"])
    return True


def on_bid(bid: Row, state: State) -> list[Row]:
    """The highest bids of an auction."""
    top, rows = ranked_bids(bid, state.get("top", []))
    state.set("top", top)
    return rows


def q11(app: Application) -> StreamingDataFrame:
    """Sessions of a bidder; a partition's bids come in order, and each closes what is over."""
    sessions = topic(app, "bids").session_window(GAP).agg(bids=Count())
    return sessions.final(closing_strategy="partition").apply(bidding_session, metadata=True)


def bidding_session(session: Row, key: str, _timestamp: int, _headers: Any) -> Row:
    """The row of a session, whose end is a millisecond behind the last bid."""
    end = (session["end"] - 1) * MS_NS + GAP_NS
    return {"bidder": int(key), "start": session["start"] * MS_NS, "end": end, "bids": session["bids"]}


def q16(app: Application) -> StreamingDataFrame:
    """All bids of a channel's day are kept, for each change would write sets anew."""
    days = topic(app, "bids").tumbling_window(DAY).agg(bids=Collect())
    return days.final(closing_strategy="partition").apply(channel_day, metadata=True)


def channel_day(day: dict[str, Any], channel: str, _timestamp: int, _headers: Any) -> Row:
    """The row of a channel's day."""
    distinct = DistinctBids()
    for bid in day["bids"]:
        distinct.add(bid)
    return distinct.row(channel, day["start"] * MS_NS)


def q17(app: Application) -> StreamingDataFrame:
    """Prices of an auction's day."""
    days = topic(app, "bids").tumbling_window(DAY).agg(prices=Reduce(with_price, first_price))
    return days.final(closing_strategy="partition").apply(
        lambda day, auction, _timestamp, _headers: auction_day(
            int(auction), day["start"] * MS_NS, day["prices"]
        ),
        metadata=True,
    )


def q20(app: Application) -> StreamingDataFrame:
    """A join of two streams."""
    return joined(topic(app, "auctions"), topic(app, "bids"), "item", auction_bids)


QUERIES: dict[str, Query] = {
    "q0": lambda app: topic(app, "bids"),
    "q1": lambda app: topic(app, "bids").apply(euro_bid),
    "q2": bid_by_bid(prices),
    "q3": q3,
    "q4": q4,
    "q8": q8,
    "q9": winning_bids,
    "q11": q11,
    "q13": lambda app: topic(app, "bids").apply(valued_bid),
    "q14": bid_by_bid(timed_bids),
    "q16": q16,
    "q17": q17,
    "q18": lambda app: topic(app, "bids").filter(last_bid, stateful=True),
    "q19": lambda app: topic(app, "bids").apply(on_bid, stateful=True, expand=True),
    "q20": q20,
    "q21": bid_by_bid(channel_bids),
    "q22": lambda app: topic(app, "bids").apply(folder_bid),
}

if __name__ == "__main__":
    app = application("nexmark")
    rows = QUERIES[os.environ["PEER_QUERY"]](app)
    rows.to_topic(app.topic("results", value_serializer="json"))
    app.run()
