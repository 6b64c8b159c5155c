"""The queries that are run: what each asks, which messages it takes, and by which field these are keyed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_BIDS = {"bids": "auction"}
_TWO_DAYS_S = 2 * 86400
_LONG_S = 600
_AUCTIONS_AND_BIDS = {"auctions": "id", **_BIDS}
_SELLERS = {"persons": "id", "auctions": "seller"}


@dataclass(frozen=True, slots=True, eq=False)
class NexmarkQuery:
    """`keys`: the field that is the key of a topic's records. `windows`: results come when event time has passed them.

    `compiled`: so Bettong's application says; else its functions are plain Python. `pause_s`: so far are generated
    events from those before and behind them, which is longer than anything is open.

    `newest_by`: the columns of a result that are its key, where results may be updates, of which the newest counts.
    `auctions_end`: none is opened twice. `apart`: no two events have one time.
    """

    number: int
    asked: str
    keys: Mapping[str, str]
    windows: bool = False
    compiled: bool = False
    pause_s: int = 60
    newest_by: tuple[int, ...] = ()
    auctions_end: bool = False
    apart: bool = False

    @property
    def name(self) -> str:
        """Its name in the benchmark."""
        return f"q{self.number}"

    def update_key(self, row: Sequence[object]) -> bytes | None:
        """The key of a result, for who writes updates; else there is none."""
        return ",".join(str(row[column]) for column in self.newest_by).encode() if self.newest_by else None


QUERIES = {
    query.name: query
    for query in (
        NexmarkQuery(0, "bids as they are", _BIDS),
        NexmarkQuery(1, "bids with the price in euros", _BIDS, compiled=True),
        NexmarkQuery(2, "bids for every 123rd auction", _BIDS, compiled=True),
        NexmarkQuery(3, "sellers of three states with their auctions of a category", _SELLERS),
        NexmarkQuery(
            4,
            "average of winning prices of a category; the newest counts",
            _AUCTIONS_AND_BIDS,
            windows=True,
            pause_s=_LONG_S,
            newest_by=(0,),
            auctions_end=True,
        ),
        NexmarkQuery(
            5, "the auctions with the most bids of 10 s, each 2 s", _BIDS, windows=True, compiled=True
        ),
        NexmarkQuery(
            6,
            "average of a seller's last ten winning prices",
            _AUCTIONS_AND_BIDS,
            windows=True,
            pause_s=_LONG_S,
            auctions_end=True,
        ),
        NexmarkQuery(7, "the highest bid of each 10 s", _BIDS, windows=True),
        NexmarkQuery(8, "who came and opened an auction within the same 10 s", _SELLERS, windows=True),
        NexmarkQuery(
            9,
            "the winning bid of each auction; the newest counts",
            _AUCTIONS_AND_BIDS,
            windows=True,
            pause_s=_LONG_S,
            newest_by=(0,),
            auctions_end=True,
        ),
        NexmarkQuery(11, "bids of a bidder's sessions, gap 10 s", {"bids": "bidder"}, windows=True),
        NexmarkQuery(13, "bids with a row of a bounded table", _BIDS),
        NexmarkQuery(14, "bids of middling price with the time of day in words", _BIDS, compiled=True),
        NexmarkQuery(
            15,
            "bids, different bidders and auctions of a day, by price",
            _BIDS,
            windows=True,
            pause_s=_TWO_DAYS_S,
        ),
        NexmarkQuery(16, "the same of each channel", {"bids": "channel"}, windows=True, pause_s=_TWO_DAYS_S),
        NexmarkQuery(17, "an auction's prices of a day", _BIDS, windows=True, pause_s=_TWO_DAYS_S),
        NexmarkQuery(
            18,
            "the last bid of each bidder and auction; the newest counts",
            _BIDS,
            compiled=True,
            newest_by=(0, 1),
            apart=True,
        ),
        NexmarkQuery(19, "the ten highest bids of each auction; the newest counts", _BIDS, newest_by=(0, 4)),
        NexmarkQuery(20, "bids with their auction, of a category", _AUCTIONS_AND_BIDS),
        NexmarkQuery(21, "bids with the number of their channel", _BIDS),
        NexmarkQuery(22, "bids with the folders of their url", _BIDS),
    )
}
