"""Nexmark by Quix Streams: `PEER_QUERY=q5 python -m benchmarks.peers.quix.nexmark`."""

import os
from collections.abc import Callable
from typing import Any

from quixstreams import Application, State
from quixstreams.dataframe import StreamingDataFrame
from quixstreams.dataframe.windows.aggregations import Count

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


def q11(app: Application) -> StreamingDataFrame:
    """Sessions of a bidder; a partition's bids come in order, and each closes what is over."""
    sessions = topic(app, "bids").session_window(GAP).agg(bids=Count())
    return sessions.final(closing_strategy="partition").apply(bidding_session, metadata=True)


def bidding_session(session: Row, key: str, _timestamp: int, _headers: Any) -> Row:
    """The row of a session, whose end is a millisecond behind the last bid."""
    end = (session["end"] - 1) * MS_NS + GAP_NS
    return {"bidder": int(key), "start": session["start"] * MS_NS, "end": end, "bids": session["bids"]}


def q20(app: Application) -> StreamingDataFrame:
    """A join of two streams."""
    return joined(topic(app, "auctions"), topic(app, "bids"), "item", auction_bids)


QUERIES: dict[str, Query] = {
    "q0": lambda app: topic(app, "bids"),
    "q1": lambda app: topic(app, "bids").apply(euro_bid),
    "q2": bid_by_bid(prices),
    "q3": q3,
    "q8": q8,
    "q11": q11,
    "q14": bid_by_bid(timed_bids),
    "q20": q20,
    "q21": bid_by_bid(channel_bids),
    "q22": lambda app: topic(app, "bids").apply(folder_bid),
}

if __name__ == "__main__":
    app = application("nexmark")
    rows = QUERIES[os.environ["PEER_QUERY"]](app)
    rows.to_topic(app.topic("results", value_serializer="json"))
    app.run()
