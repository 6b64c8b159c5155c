"""The queries that are run: what each asks, which messages it takes, and by which field these are keyed."""

from collections.abc import Mapping
from dataclasses import dataclass

_BIDS = {"bids": "auction"}
_SELLERS = {"persons": "id", "auctions": "seller"}


@dataclass(frozen=True, slots=True, eq=False)
class NexmarkQuery:
    """`keys`: the field that is the key of a topic's records. `windows`: results come when event time has passed them.

    `compiled`: so Bettong's application says; else its functions are plain Python.
    """

    number: int
    asked: str
    keys: Mapping[str, str]
    windows: bool = False
    compiled: bool = False

    @property
    def name(self) -> str:
        """Its name in the benchmark."""
        return f"q{self.number}"


QUERIES = {
    query.name: query
    for query in (
        NexmarkQuery(0, "bids as they are", _BIDS),
        NexmarkQuery(1, "bids with the price in euros", _BIDS, compiled=True),
        NexmarkQuery(2, "bids for every 123rd auction", _BIDS, compiled=True),
        NexmarkQuery(3, "sellers of three states with their auctions of a category", _SELLERS),
        NexmarkQuery(
            5, "the auctions with the most bids of 10 s, each 2 s", _BIDS, windows=True, compiled=True
        ),
        NexmarkQuery(7, "the highest bid of each 10 s", _BIDS, windows=True),
        NexmarkQuery(8, "who came and opened an auction within the same 10 s", _SELLERS, windows=True),
        NexmarkQuery(11, "bids of a bidder's sessions, gap 10 s", {"bids": "bidder"}, windows=True),
        NexmarkQuery(14, "bids of middling price with the time of day in words", _BIDS, compiled=True),
        NexmarkQuery(20, "bids with their auction, of a category", {"auctions": "id", **_BIDS}),
        NexmarkQuery(21, "bids with the number of their channel", _BIDS),
        NexmarkQuery(22, "bids with the folders of their url", _BIDS),
    )
}
