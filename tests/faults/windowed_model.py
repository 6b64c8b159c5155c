"""Payments for `windowed.py`, and what must come out of it: a plain model that knows no watermark and no partition.

Results must depend on the payments alone, while processes die. So the payments leave room between what is in time and
what is late, and between what a timer or a time to live waits for and the next payment:

    a round      0.2 s of the run, one frame of each stream, 10 s of event time
    steady       accounts that pay in every round, so that every partition knows every stream's watermark
    others       pay in one phase of 5 rounds (50 s) and rest for five: longer than the timer and the time to live
    in time      up to 4 s out of order, and one round behind the other stream; a source waits for 30 s
    late         by 10 minutes, of the others, in the middle of a phase: behind all windows

Each stream ends with a payment far ahead: so every window of those before is over, and every timer has fired.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from tests.faults.windowed import (
    GAP_S,
    LAST,
    MINUTE_S,
    QUIET_S,
    SECOND_NS,
    TREND_EACH_S,
    TREND_S,
    TTL_S,
    Bill,
    Minute,
    MinuteOfAll,
    Payment,
    Quiet,
    Spree,
    Trend,
)

BEGIN_NS = 1_700_000_000 * SECOND_NS
STREAMS = 2
ROUNDS_PER_S = 5
ROUND_PAYMENTS = 50  # of a stream
ROUND_NS = 10 * SECOND_NS
PHASE_ROUNDS = 5
PHASES_EACH = 6
STEADY = 20  # accounts of a stream
OTHERS = 4  # accounts of a stream and phase
JITTER_NS = 4 * SECOND_NS
LATE_NS = 600 * SECOND_NS

Sent = dict[str, list[Payment]]  # by account, in the order in which they are sent


def write(folder: Path, *, seconds: int) -> None:
    """`payments-1.jsonl`, `payments-2.jsonl`: the streams; `SINK.jsonl` of each sink: what must come out there."""
    rounds = seconds * ROUNDS_PER_S
    for stream in range(1, STREAMS + 1):
        write_lines(folder / f"payments-{stream}.jsonl", paid(stream, rounds=rounds))
    sent = all_paid(rounds=rounds)
    for sink, expected in CASES.items():
        write_lines(folder / f"{sink}.jsonl", expected(sent))


def all_paid(*, rounds: int) -> Sent:
    """The payments of all streams, but for those that end them."""
    sent: Sent = defaultdict(list)
    for stream in range(1, STREAMS + 1):
        for payment in paid(stream, rounds=rounds):
            if not payment.account.startswith(LAST):
                sent[payment.account].append(payment)
    return sent


def paid(stream: int, *, rounds: int) -> Iterator[Payment]:
    """The payments of a stream. Its accounts are its own, so that their order is that of the stream."""
    chance = Random(stream)
    total = rounds * ROUND_PAYMENTS
    for number in range(total):
        of_round, phase = number % ROUND_PAYMENTS, number // ROUND_PAYMENTS // PHASE_ROUNDS
        now_ns = BEGIN_NS + number * ROUND_NS // ROUND_PAYMENTS
        at_ns = now_ns - chance.randrange(JITTER_NS)
        is_steady = of_round % 2 == 1
        if is_steady:
            account = f"steady-{stream}-{of_round // 2 % STEADY}"
        else:
            account = f"other-{stream}-{phase % PHASES_EACH}-{of_round // 2 % OTHERS}"
        is_middle = 1 < number // ROUND_PAYMENTS % PHASE_ROUNDS < PHASE_ROUNDS - 1
        if is_middle and not is_steady and chance.random() < 0.1:
            at_ns = now_ns - LATE_NS
        number_of_all = number * STREAMS + stream
        yield Payment(account, number_of_all, chance.randrange(5), chance.randrange(1000), at_ns)
    last_ns = BEGIN_NS + total * ROUND_NS // ROUND_PAYMENTS + 10 * LATE_NS
    yield Payment(f"{LAST}-{stream}", total * STREAMS + stream, 0, 0, last_ns)


def in_time(sent: Sent) -> Iterator[tuple[str, list[Payment]]]:
    """Of each account, those that are not late."""
    for account, payments in sent.items():
        yield (
            account,
            [each for each, is_late in zip(payments, lateness(payments), strict=True) if not is_late],
        )


def per_minute(sent: Sent) -> Iterator[Minute]:
    """Of each account, one a minute in which it has paid."""
    for account, payments in in_time(sent):
        for start, of_minute in _windows(payments, MINUTE_S, MINUTE_S):
            amount, shops = sum(each.amount for each in of_minute), {each.shop for each in of_minute}
            yield Minute(account, start, len(of_minute), amount, len(shops))


def per_minute_of_all(sent: Sent) -> Iterator[MinuteOfAll]:
    """One a minute in which anybody has paid."""
    minutes: dict[int, list[Minute]] = defaultdict(list)
    for minute in per_minute(sent):
        minutes[minute.start].append(minute)
    for start, found in minutes.items():
        payments, amount = (
            sum(each) for each in zip(*((each.payments, each.amount) for each in found), strict=True)
        )
        yield MinuteOfAll(start, start, len(found), payments, amount)


def late(sent: Sent) -> Iterator[Payment]:
    """As they came."""
    for payments in sent.values():
        for payment, is_late in zip(payments, lateness(payments), strict=True):
            if is_late:
                yield payment


def trends(sent: Sent) -> Iterator[Trend]:
    """Of each account, one each half a minute, of two minutes."""
    for account, payments in in_time(sent):
        for start, of_trend in _windows(payments, TREND_S, TREND_EACH_S):
            yield Trend(account, start, len(of_trend), max(each.amount for each in of_trend))


def sprees(sent: Sent) -> Iterator[Spree]:
    """Of each account, those in a row. A session ends just behind the gap after its last payment."""
    for account, payments in in_time(sent):
        for spree in _runs(sorted(payments, key=lambda each: each.at), GAP_S):
            end_ns = spree[-1].at + GAP_S * SECOND_NS + 1
            yield Spree(account, spree[0].at, end_ns, len(spree), sum(each.amount**2 for each in spree))


def quiet(sent: Sent) -> Iterator[Quiet]:
    """Of each account, when it had been quiet for a while. One that is late counts with those around it."""
    for account, payments in sent.items():
        for active in _runs(payments, TTL_S):
            yield Quiet(account, max(each.at for each in active) + QUIET_S * SECOND_NS, len(active))


# By sink: what must come out, of each key in its order. A new operator that goes by time is one more row.
CASES: dict[str, Callable[[Sent], Iterator[Any]]] = {
    "per-minute": per_minute,
    "per-minute-of-all": per_minute_of_all,
    "late": late,
    "trend": trends,
    "spree": sprees,
    "quiet": quiet,
}


def lateness(messages: Sequence[Payment | Bill]) -> list[bool]:
    """Of an account's messages of one kind, in their order: whether each is late."""
    newest_ns, found = 0, []
    for message in messages:
        found.append(message.at < newest_ns - LATE_NS // 2)
        newest_ns = max(newest_ns, message.at)
    return found


def _windows(payments: list[Payment], size_s: int, slide_s: int) -> Iterator[tuple[int, list[Payment]]]:
    """By their starts, in order, the windows that hold any."""
    size_ns, slide_ns = size_s * SECOND_NS, slide_s * SECOND_NS
    found: dict[int, list[Payment]] = defaultdict(list)
    for payment in payments:
        start_ns = payment.at // slide_ns * slide_ns
        while start_ns > payment.at - size_ns:
            found[start_ns].append(payment)
            start_ns -= slide_ns
    return iter(sorted(found.items()))


def _runs(payments: list[Payment], gap_s: int) -> Iterator[list[Payment]]:
    """Payments of which each is at most the gap newer than the newest before it."""
    run: list[Payment] = []
    newest_ns = 0
    for payment in payments:
        if run and payment.at > newest_ns + gap_s * SECOND_NS:
            yield run
            run = []
        newest_ns = max(newest_ns, payment.at) if run else payment.at
        run.append(payment)
    if run:
        yield run


def write_lines(path: Path, messages: Iterable[Any]) -> None:
    """As JSON, as a sink's files have it."""
    lines = (json.dumps(asdict(each), separators=(",", ":")) + "\n" for each in messages)
    path.write_text("".join(lines))
