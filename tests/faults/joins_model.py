"""Bills for the joins of `windowed.py`, and what must come out of them: pairs found by trying each with each.

As in `windowed_model.py`, the log's order between streams must not count, nor how far a watermark is. So

    bills           come a frame a round, of the accounts of both streams of payments, and are as much out of order
    late            are bills by 10 minutes, too: behind whatever is kept of that time
    alone           are bills of accounts that rest, payments of steady ones without a bill, and those between two bills
    latest          is a join of payments with payments of the same stream: there, that stream's order counts
    order of pairs  a payment's pairs come in the order of the account's bills, whichever of both is first in the log;
                    an account gets two in a round, of which the second is often the older one
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.faults.windowed import (
    CHARGED_S,
    HOME,
    LAST,
    LEAVING,
    MATCHED_S,
    MINUTE_S,
    SECOND_NS,
    SETTLED_S,
    Bill,
    Charged,
    Matched,
    Payment,
    Settled,
    SinceHome,
)
from tests.faults.windowed_model import (
    BEGIN_NS,
    JITTER_NS,
    LATE_NS,
    OTHERS,
    PHASE_ROUNDS,
    PHASES_EACH,
    ROUND_NS,
    ROUNDS_PER_S,
    STEADY,
    STREAMS,
    Sent,
    all_paid,
    lateness,
    write_lines,
)

# Of a round: two of each account of a stream that is billed, steady or paying now, and one of two that rest.
ROUND_BILLS = 30
RESTING_FROM = 28
STEADY_BILLED = 10

Pair = tuple[Payment, Bill]
Billed = dict[str, list[Bill]]  # by account, in the order in which they are sent


def write(folder: Path, *, seconds: int) -> None:
    """`bills.jsonl`: their stream; `SINK.jsonl` of each sink behind a join: what must come out there."""
    rounds = seconds * ROUNDS_PER_S
    write_lines(folder / "bills.jsonl", billed(rounds=rounds))
    sent, bills = all_paid(rounds=rounds), all_billed(rounds=rounds)
    for sink, expected in CASES.items():
        write_lines(folder / f"{sink}.jsonl", expected(sent, bills))


def billed(*, rounds: int) -> Iterator[Bill]:
    """The bills, in one stream."""
    chance = Random(STREAMS + 1)
    total = rounds * ROUND_BILLS
    for number in range(total):
        of_round, of_phase = number % ROUND_BILLS, number // ROUND_BILLS % PHASE_ROUNDS
        now_ns = BEGIN_NS + number * ROUND_NS // ROUND_BILLS
        at_ns = now_ns - chance.randrange(JITTER_NS)
        is_late = STEADY <= of_round < RESTING_FROM and 1 < of_phase < PHASE_ROUNDS - 1
        if is_late and chance.random() < 0.1:
            at_ns = now_ns - LATE_NS
        yield Bill(_account(number // ROUND_BILLS, of_round), number + 1, at_ns)
    last_ns = BEGIN_NS + total * ROUND_NS // ROUND_BILLS + 10 * LATE_NS
    yield Bill(f"{LAST}-{STREAMS + 1}", total + 1, last_ns)


def all_billed(*, rounds: int) -> Billed:
    """The bills, but for the one that ends their stream."""
    found: Billed = defaultdict(list)
    for bill in billed(rounds=rounds):
        if not bill.account.startswith(LAST):
            found[bill.account].append(bill)
    return found


def settled(sent: Sent, bills: Billed) -> Iterator[Settled]:
    """All pairs of payments and bills of an account that are near each other."""
    for account, payments in sent.items():
        for payment, bill in _pairs(_in_time(payments), _in_time(bills.get(account, [])), SETTLED_S):
            yield Settled(payment.number, bill.number, account)


def unsettled(sent: Sent, bills: Billed) -> Iterator[Payment | Bill]:
    """All that is late."""
    of_accounts: list[Sequence[Payment | Bill]] = [*sent.values(), *bills.values()]
    for messages in of_accounts:
        for message, is_late in zip(messages, lateness(messages), strict=True):
            if is_late:
                yield message


def matched(sent: Sent, bills: Billed) -> Iterator[Matched]:
    """Pairs that are nearer, and whoever is in none."""
    for account in sorted({*sent, *bills}):
        payments, of_account = _in_time(sent.get(account, [])), _in_time(bills.get(account, []))
        yield from _or_alone(payments, of_account, _pairs(payments, of_account, MATCHED_S))


def met(sent: Sent, bills: Billed) -> Iterator[Matched]:
    """Pairs of payments at home and bills of the same minute, and whoever is in none."""
    minute_ns = MINUTE_S * SECOND_NS
    for account in sorted({*sent, *bills}):
        home = [each for each in _in_time(sent.get(account, [])) if each.shop == HOME]
        of_account = _in_time(bills.get(account, []))
        pairs = [
            (one, other)
            for one in home
            for other in of_account
            if one.at // minute_ns == other.at // minute_ns
        ]
        yield from _or_alone(home, of_account, pairs)


def charged(sent: Sent, bills: Billed) -> Iterator[Charged]:
    """Of each account, its payments by their time; each with the newest bill of the minute before it."""
    for account, payments in sent.items():
        for payment in sorted(_in_time(payments), key=lambda each: each.at):
            earliest_ns = payment.at - CHARGED_S * SECOND_NS
            valid = [
                each for each in _in_time(bills.get(account, [])) if earliest_ns <= each.at <= payment.at
            ]
            newest = max(valid, key=lambda each: each.at, default=None)
            yield Charged(account, payment.number, 0 if newest is None else newest.number)


def since_home(sent: Sent, bills: Billed) -> Iterator[SinceHome]:
    """Of each account, its payments as they came; each with the newest one at home, unless that was the last there."""
    for account, payments in sent.items():
        home = 0
        for payment in payments:
            if payment.shop == HOME:
                home = 0 if payment.amount < LEAVING else payment.number
            else:
                yield SinceHome(account, payment.number, home)


# By sink: what must come out. Its order counts where the specs compare keys.
CASES: dict[str, Callable[[Sent, Billed], Iterator[Any]]] = {
    "settled": settled,
    "unsettled": unsettled,
    "matched": matched,
    "charged": charged,
    "met": met,
    "since-home": since_home,
}


def _account(round_: int, of_round: int) -> str:
    stream = round_ % STREAMS + 1
    if of_round < STEADY:
        return f"steady-{stream}-{of_round % STEADY_BILLED}"
    phase = round_ // PHASE_ROUNDS + PHASES_EACH // 2 * (of_round >= RESTING_FROM)
    return f"other-{stream}-{phase % PHASES_EACH}-{(of_round - STEADY) % OTHERS}"


def _pairs(payments: list[Payment], bills: list[Bill], within_s: tuple[int, int]) -> list[Pair]:
    """Each with each. Of a payment, in the order of the bills."""
    earliest_ns, latest_ns = (each * SECOND_NS for each in within_s)
    return [
        (payment, bill)
        for payment in payments
        for bill in bills
        if earliest_ns <= bill.at - payment.at <= latest_ns
    ]


def _or_alone(payments: list[Payment], bills: list[Bill], pairs: list[Pair]) -> Iterator[Matched]:
    for payment, bill in pairs:
        yield Matched(payment.number, payment.number, bill.number)
    for payment in payments:
        if not any(one is payment for one, _ in pairs):
            yield Matched(payment.number, payment.number, 0)
    for bill in bills:
        if not any(other is bill for _, other in pairs):
            yield Matched(-bill.number, 0, bill.number)


def _in_time(messages: list[Any]) -> list[Any]:
    return [each for each, is_late in zip(messages, lateness(messages), strict=True) if not is_late]
