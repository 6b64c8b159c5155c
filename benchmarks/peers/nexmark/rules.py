"""What the queries do with single rows, for peers that call Python: plain functions of JSON objects.

Times are Unix ns. See examples/nexmark for what each means.
"""

import re
from datetime import timedelta
from typing import Any

Row = dict[str, Any]
Sides = tuple[dict[str, str], list[str]]

EUROS_PER_DOLLAR = 0.908
STATES = ("OR", "ID", "CA")
CATEGORY = 10
KNOWN_CHANNELS = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
CHANNEL_ID = r"(?:&|^)channel_id=([^&]*)"
SIDE_ROWS = 10_000
SIDE = {number: f"value {number}" for number in range(SIDE_ROWS)}
MS_NS = 1_000_000
GAP = timedelta(seconds=10)
# A session ends just behind the gap that follows its last bid.
GAP_NS = 10 * 10**9 + 1
SIZE_NS = 10 * 10**9
_CHANNEL_ID = re.compile(CHANNEL_ID)
_HOUR_NS = 3600 * 10**9


def euro_bid(bid: Row) -> Row:
    """Query 1."""
    price = EUROS_PER_DOLLAR * bid["price"]
    return {"auction": bid["auction"], "bidder": bid["bidder"], "price": price, "at": bid["at"]}


def prices(bid: Row) -> list[Row]:
    """Query 2."""
    return [{"auction": bid["auction"], "price": bid["price"]}] if bid["auction"] % 123 == 0 else []


def local_items(person: Row, auction: Row) -> list[Row]:
    """Query 3."""
    if person["state"] not in STATES or auction["category"] != CATEGORY:
        return []
    return [{**{name: person[name] for name in ("name", "city", "state")}, "auction": auction["id"]}]


def new_sellers(arrived: Row, sides: Sides) -> tuple[Sides, list[Row]]:
    """Query 8, of a person or an auction: what is kept of its person, by window, and what comes out.

    Names of who came in a window, and the windows with auctions: whichever comes first waits for the other.
    """
    came, opened = sides
    start = arrived["at"] // SIZE_NS * SIZE_NS
    window = str(start)
    if "name" in arrived:
        rows = (
            [{"person": arrived["id"], "name": arrived["name"], "start": start}] if window in opened else []
        )
        return ({**came, window: arrived["name"]}, opened), rows
    if window in opened:
        return sides, []
    rows = [{"person": arrived["seller"], "name": came[window], "start": start}] if window in came else []
    return (came, [*opened, window]), rows


def valued_bid(bid: Row) -> Row:
    """Query 13."""
    row = {name: bid[name] for name in ("auction", "bidder", "price", "at")}
    return {**row, "value": SIDE[bid["auction"] % SIDE_ROWS]}


def timed_bids(bid: Row) -> list[Row]:
    """Query 14."""
    price = EUROS_PER_DOLLAR * bid["price"]
    if not 1_000_000 < price < 50_000_000:
        return []
    hour = bid["at"] // _HOUR_NS % 24
    words = "dayTime" if 8 <= hour <= 18 else "nightTime" if hour <= 6 or hour >= 20 else "otherTime"
    return [
        {
            "auction": bid["auction"],
            "bidder": bid["bidder"],
            "price": price,
            "time_of_day": words,
            "at": bid["at"],
            "extra": bid["extra"],
            "cs": bid["extra"].count("c"),
        }
    ]


def auction_bids(auction: Row, bid: Row) -> list[Row]:
    """Query 20."""
    if auction["category"] != CATEGORY:
        return []
    of_bid = {**_sold(bid), "at": bid["at"]}
    return [of_bid | {name: auction[name] for name in ("item", "seller", "category", "expires")}]


def channel_bids(bid: Row) -> list[Row]:
    """Query 21."""
    channel_id = KNOWN_CHANNELS.get(bid["channel"].lower())
    if channel_id is None:
        found = _CHANNEL_ID.search(bid["url"])
        if found is None:
            return []
        channel_id = found[1]
    return [{**_sold(bid), "channel_id": channel_id}]


def folder_bid(bid: Row) -> Row:
    """Query 22."""
    folders = bid["url"].split("/")[3:6]
    return _sold(bid) | {f"folder_{number}": folder for number, folder in enumerate(folders, 1)}


def _sold(bid: Row) -> Row:
    return {name: bid[name] for name in ("auction", "bidder", "price", "channel")}
