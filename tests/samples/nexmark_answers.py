"""The Nexmark queries as loops over lists: what the applications of examples/nexmark must give.

Each takes the events in the order of their arrival and gives the rows of its results, in no order. Knows nothing of
Bettong. Where a query gives updates, the rows are the last ones.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from model import Auction, Bid, Person

Event: TypeAlias = tuple[str, Person | Auction | Bid]
Events: TypeAlias = Sequence[Event]
Row: TypeAlias = tuple[Any, ...]

S = 10**9


def bids_of(events: Events) -> Iterator[Bid]:
    return (each for _, each in events if isinstance(each, Bid))


def auctions_of(events: Events) -> Iterator[Auction]:
    return (each for _, each in events if isinstance(each, Auction))


def persons_of(events: Events) -> Iterator[Person]:
    return (each for _, each in events if isinstance(each, Person))


def grouped(bids: Iterable[Bid], key: Callable[[Bid], Any]) -> dict[Any, list[Bid]]:
    found = defaultdict(list)
    for bid in bids:
        found[key(bid)].append(bid)
    return found


def start_of(at: int, size_s: int) -> int:
    return at - at % (size_s * S)


def q0(events: Events) -> list[Row]:
    return [(b.auction, b.bidder, b.price, b.channel, b.url, b.at, b.extra) for b in bids_of(events)]


def q1(events: Events) -> list[Row]:
    return [(b.auction, b.bidder, 0.908 * b.price, b.at) for b in bids_of(events)]


def q2(events: Events) -> list[Row]:
    return [(b.auction, b.price) for b in bids_of(events) if b.auction % 123 == 0]


def q3(events: Events) -> list[Row]:
    local = {each.id: each for each in persons_of(events) if each.state in {"OR", "ID", "CA"}}
    chosen = (a for a in auctions_of(events) if a.category == 10 and a.seller in local)
    return [(local[a.seller].name, local[a.seller].city, local[a.seller].state, a.id) for a in chosen]


def winning(events: Events) -> list[tuple[Auction, Bid]]:
    """Each auction with its winning bid."""
    bids = grouped(bids_of(events), lambda bid: bid.auction)
    found = []
    for auction in auctions_of(events):
        in_time = [bid for bid in bids.get(auction.id, []) if auction.at <= bid.at <= auction.expires]
        if in_time:
            highest = max(bid.price for bid in in_time)
            tied = [bid for bid in in_time if bid.price == highest]
            found.append((auction, min(tied, key=lambda bid: (bid.at, bid.bidder))))
    return found


def q4(events: Events) -> list[Row]:
    prices = defaultdict(list)
    for auction, bid in winning(events):
        prices[auction.category].append(bid.price)
    return [(category, sum(each) / len(each)) for category, each in prices.items()]


def q5(events: Events) -> list[Row]:
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for bid in bids_of(events):
        newest = start_of(bid.at, 2)
        for start in range(newest - 8 * S, newest + 1, 2 * S):
            counts[start][bid.auction] += 1
    found = []
    for start, of in counts.items():
        most = max(of.values())
        found += [(start, start + 10 * S, auction, most) for auction, count in of.items() if count == most]
    return found


def q6(events: Events) -> list[Row]:
    sold = defaultdict(list)
    for auction, bid in sorted(winning(events), key=lambda each: (each[0].expires, each[0].id)):
        sold[auction.seller].append(bid.price)
    lasts = (
        (seller, prices[max(0, end - 10) : end])
        for seller, prices in sold.items()
        for end in range(1, len(prices) + 1)
    )
    return [(seller, sum(last) / len(last)) for seller, last in lasts]


def q7(events: Events) -> list[Row]:
    found = []
    for start, bids in grouped(bids_of(events), lambda bid: start_of(bid.at, 10)).items():
        highest = max(bid.price for bid in bids)
        found += [(start, b.auction, b.price, b.bidder, b.at) for b in bids if b.price == highest]
    return found


def q8(events: Events) -> list[Row]:
    opened = {(each.seller, start_of(each.at, 10)) for each in auctions_of(events)}
    came = ((each.id, each.name, start_of(each.at, 10)) for each in persons_of(events))
    return [(person, name, start) for person, name, start in came if (person, start) in opened]


def q9(events: Events) -> list[Row]:
    return [
        (auction.id, auction.seller, auction.category, bid.bidder, bid.price, bid.at, auction.expires + 1)
        for auction, bid in winning(events)
    ]


def q10(events: Events) -> list[Row]:
    found = []
    for b in bids_of(events):
        text = datetime.fromtimestamp(b.at // S, UTC).isoformat()
        found.append((b.auction, b.bidder, b.price, b.at, b.extra, text[:10], text[11:16]))
    return found


def q11(events: Events) -> list[Row]:
    found = []
    for bidder, bids in grouped(bids_of(events), lambda bid: bid.bidder).items():
        times = sorted(bid.at for bid in bids)
        begins = [0, *(i for i in range(1, len(times)) if times[i] - times[i - 1] > 10 * S), len(times)]
        for begin, end in pairwise(begins):
            found.append((bidder, times[begin], times[end - 1] + 10 * S + 1, end - begin))
    return found


def q12(arrivals: Iterable[tuple[int, Bid]]) -> list[Row]:
    """Of bids, each with the time of the log's clock at which it came."""
    counts = Counter((bid.bidder, start_of(at, 10)) for at, bid in arrivals)
    return [(bidder, start, start + 10 * S, count) for (bidder, start), count in counts.items()]


def q13(events: Events) -> list[Row]:
    return [
        (bid.auction, bid.bidder, bid.price, bid.at, f"value {bid.auction % 10_000}")
        for bid in bids_of(events)
    ]


def q14(events: Events) -> list[Row]:
    words = dict.fromkeys(range(8, 19), "dayTime") | {7: "otherTime", 19: "otherTime"}
    found = []
    for b in bids_of(events):
        price = 0.908 * b.price
        if 1_000_000 < price < 50_000_000:
            hour = datetime.fromtimestamp(b.at // S, UTC).hour
            letters = sum(letter == "c" for letter in b.extra)
            found.append((b.auction, b.bidder, price, words.get(hour, "nightTime"), b.at, b.extra, letters))
    return found


def by_price(bids: list[Bid]) -> list[list[Bid]]:
    """All, then those of each range of prices."""
    low = [bid for bid in bids if bid.price < 10_000]
    high = [bid for bid in bids if bid.price >= 1_000_000]
    return [bids, low, [bid for bid in bids if 10_000 <= bid.price < 1_000_000], high]


def day_of(bid: Bid) -> int:
    return start_of(bid.at, 86400)


def ranks(bids: list[Bid]) -> list[int]:
    ranges = by_price(bids)
    return [
        *(len(each) for each in ranges),
        *(len({bid.bidder for bid in each}) for each in ranges),
        *(len({bid.auction for bid in each}) for each in ranges),
    ]


def q15(events: Events) -> list[Row]:
    return [(day, *ranks(bids)) for day, bids in grouped(bids_of(events), day_of).items()]


def q16(events: Events) -> list[Row]:
    days = grouped(bids_of(events), lambda bid: (bid.channel, day_of(bid)))
    return [(channel, day, *ranks(bids)) for (channel, day), bids in days.items()]


def q17(events: Events) -> list[Row]:
    found = []
    for (auction, start), bids in grouped(
        bids_of(events), lambda bid: (bid.auction, start_of(bid.at, 86400))
    ).items():
        prices = sorted(bid.price for bid in bids)
        counts = [len(each) for each in by_price(bids)]
        mean = sum(prices) / len(prices)
        found.append((auction, start, *counts, prices[0], prices[-1], mean, sum(prices)))
    return found


def q18(events: Events) -> list[Row]:
    """Of two bids at one time, the one that came first."""
    pairs = grouped(bids_of(events), lambda bid: (bid.bidder, bid.auction))
    lasts = (max(bids, key=lambda bid: bid.at) for bids in pairs.values())
    return [(b.auction, b.bidder, b.price, b.channel, b.url, b.at, b.extra) for b in lasts]


def q19(events: Events) -> list[Row]:
    found = []
    for auction, bids in grouped(bids_of(events), lambda bid: bid.auction).items():
        best = sorted(bids, key=lambda bid: (-bid.price, bid.at, bid.bidder))[:10]
        found += [(auction, bid.bidder, bid.price, bid.at, rank) for rank, bid in enumerate(best, 1)]
    return found


def q20(events: Events) -> list[Row]:
    chosen = {each.id: each for each in auctions_of(events) if each.category == 10}
    return [
        (b.auction, b.bidder, b.price, b.channel, b.at, a.item, a.seller, a.category, a.expires)
        for b in bids_of(events)
        if (a := chosen.get(b.auction)) is not None
    ]


def q21(events: Events) -> list[Row]:
    known = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
    found = []
    for b in bids_of(events):
        ids = parse_qs(urlsplit(b.url).query).get("channel_id", [])
        channel = b.channel.lower()
        if channel in known or ids:
            found.append((b.auction, b.bidder, b.price, b.channel, known.get(channel) or ids[0]))
    return found


def q22(events: Events) -> list[Row]:
    return [
        (b.auction, b.bidder, b.price, b.channel, *urlsplit(b.url).path.split("/")[1:4])
        for b in bids_of(events)
    ]


# By number. Query 12 is not among them: it goes by when bids came.
ANSWERS: dict[int, Callable[[Events], list[Row]]] = {
    0: q0,
    1: q1,
    2: q2,
    3: q3,
    4: q4,
    5: q5,
    6: q6,
    7: q7,
    8: q8,
    9: q9,
    10: q10,
    11: q11,
    13: q13,
    14: q14,
    15: q15,
    16: q16,
    17: q17,
    18: q18,
    19: q19,
    20: q20,
    21: q21,
    22: q22,
}
