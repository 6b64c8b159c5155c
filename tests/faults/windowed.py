r"""Windows, joins, a timer and a time to live. `windowed_model.py` and `joins_model.py` say what must come out.

payments --> minutes (tumbling) --> minutes, and what is late for them --> late
      |  |          \--> key_by start --> all (tumbling) --> all: a second stage, behind the windows of the first
      |  \--> trends (sliding) --> trends
      |   \--> sprees (sessions) --> sprees
      |    \--> activity (a timer, a time to live) --> quiet
      |     \--> those elsewhere, with the newest one at home (join_latest) --> since-home
      |
      |   /--> settled (join_within, compiled) --> settled, and what is late for it --> unsettled
   bills ----> matched (join_within, outer) --> matched
         |\--> charged (join_as_of) --> charged
         \--> those at home and bills of a minute (join_window, outer) --> met
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import bettong
from bettong import Width

SECOND_NS = 1_000_000_000
OUT_OF_ORDER_S = 30
MINUTE_S = 60
TREND_S, TREND_EACH_S = 120, 30
GAP_S = 20
QUIET_S = 30
TTL_S = 75
# How much later than a payment its bill may be; less than 0: earlier.
SETTLED_S = (-10, 5)
MATCHED_S = (-4, 8)
CHARGED_S = 60
# The shop where an account is at home, and what it pays there when it leaves.
HOME = 0
LEAVING = 200
# How the accounts begin that end a stream. Nothing is reported of them: their time comes when nobody is there any more.
LAST = "last"

Account = Annotated[str, Width(12)]


@dataclass
class Payment:
    """Of an account; `at`: Unix ns. No two have the same number."""

    account: Account
    number: int
    shop: int
    amount: int
    at: int


@dataclass
class Bill:
    """Of an account; `at`: Unix ns. No two have the same number."""

    account: Account
    number: int
    at: int


@dataclass
class Minute:
    """What an account has paid in a minute."""

    key: str
    start: int
    payments: int
    amount: int
    shops: int


@dataclass
class MinuteOfAll:
    """What all accounts have paid in a minute, whose start is the key."""

    key: int
    start: int
    accounts: int
    payments: int
    amount: int


@dataclass
class Trend:
    """What an account has paid in two minutes, each half a minute."""

    key: str
    start: int
    payments: int
    highest: int


@dataclass
class Spree:
    """Payments of an account in a row. `digest`: of their amounts, whatever their order."""

    account: str
    start: int
    end: int
    payments: int
    digest: int


@dataclass
class Quiet:
    """An account had no payment for a while. `payments`: since it was quiet before."""

    account: str
    at: int
    payments: int


@dataclass
class Settled:
    """A payment, and a bill that is near it; by their numbers, as all that joins give."""

    payment: int
    bill: int
    account: Account


@dataclass
class Matched:
    """The same, or one of both alone: the other is 0 then. `about`: the payment; or less than 0, the bill."""

    about: int
    payment: int
    bill: int


@dataclass
class Charged:
    """A payment, and the bill that was the newest one when it was made; 0 if there was none."""

    account: str
    payment: int
    bill: int


@dataclass
class SinceHome:
    """A payment elsewhere, and the newest one at home; 0 if there is none, or the account has left."""

    account: str
    payment: int
    home: int


@dataclass
class Paid:
    """What is kept of a spree: how many payments, and the sum of their squares."""

    payments: int = 0
    squares: int = 0


class Sprees:
    """Counts the payments of a session."""

    def initial(self) -> Paid:
        return Paid()

    def update(self, paid: Paid, payment: Payment) -> Paid:
        return Paid(paid.payments + 1, paid.squares + payment.amount**2)

    def combine(self, left: Paid, right: Paid) -> Paid:
        return Paid(left.payments + right.payments, left.squares + right.squares)

    def output(self, account: str, paid: Paid, window: bettong.Window) -> Spree:
        return Spree(account, window.start, window.end, paid.payments, paid.squares)


@dataclass
class Activity:
    """Of an account. Its time to live ends it after it was quiet, and before it pays again: see `windowed_model`."""

    payments: int = 0
    newest: int = 0
    quiet_at: bettong.Timer = bettong.NEVER


def note(payment: Payment, activity: Activity) -> Quiet | None:
    """Counts, and sets the timer behind the newest payment."""
    activity.payments += 1
    activity.newest = max(activity.newest, payment.at)
    activity.quiet_at = activity.newest + bettong.seconds(QUIET_S)
    return None


def on_quiet(fired: bettong.Fired[str], activity: Activity) -> Quiet:
    """Tells the count, and does not reset it: the time to live does."""
    return Quiet(fired.key, fired.at, activity.payments)


@bettong.compiled
def settled_by(payment: Payment, bill: Bill) -> Settled:
    return Settled(payment.number, bill.number, payment.account)


def matched_with(payment: Payment | None, bill: Bill | None) -> Matched:
    if payment is None:
        assert bill is not None
        return Matched(-bill.number, 0, bill.number)
    return Matched(payment.number, payment.number, 0 if bill is None else bill.number)


def charged_by(payment: Payment, bill: Bill | None) -> Charged:
    return Charged(payment.account, payment.number, 0 if bill is None else bill.number)


def since_home(payment: Payment, home: Payment | None) -> SinceHome:
    return SinceHome(payment.account, payment.number, 0 if home is None else home.number)


def is_reported(payment: Payment) -> bool:
    return not payment.account.startswith(LAST)


def is_bill_reported(bill: Bill) -> bool:
    return not bill.account.startswith(LAST)


def is_at_home(payment: Payment) -> bool:
    return payment.shop == HOME


def is_elsewhere(payment: Payment) -> bool:
    return payment.shop != HOME


def leaves_home(payment: Payment) -> bool:
    return payment.amount < LEAVING


def seconds(count: int) -> timedelta:
    return timedelta(seconds=count)


per_minute = bettong.aggregate(
    Minute, payments=bettong.Count(), amount=bettong.Sum("amount"), shops=bettong.Distinct("shop")
)
of_all = bettong.aggregate(
    MinuteOfAll, accounts=bettong.Count(), payments=bettong.Sum("payments"), amount=bettong.Sum("amount")
)
trend = bettong.aggregate(Trend, payments=bettong.Count(), highest=bettong.Max("amount"))

app = bettong.Application("windowed")
payments = app.source(
    "payments", schema=Payment, key="account", event_time="at", out_of_order=seconds(OUT_OF_ORDER_S)
)
bills = app.source("bills", schema=Bill, key="account", event_time="at", out_of_order=seconds(OUT_OF_ORDER_S))
reported, reported_bills = payments.filter(is_reported), bills.filter(is_bill_reported)

minute = bettong.tumbling(seconds(MINUTE_S))
minutes = reported.window(minute, per_minute, name="minutes", late="side")
minutes.sink("per-minute")
minutes.late.sink("late")
minutes.key_by("start", name="starts").window(minute, of_all, name="all").sink("per-minute-of-all")
trends = bettong.sliding(seconds(TREND_S), seconds(TREND_EACH_S))
reported.window(trends, trend, name="trends").sink("trend")
reported.window(bettong.sessions(seconds(GAP_S)), Sprees(), name="sprees").sink("spree")
reported.stateful(
    note,
    state=Activity,
    name="activity",
    timers={"quiet_at": on_quiet},
    ttl=seconds(TTL_S),
    ttl_clock="event",
).sink("quiet")

settled = payments.join_within(bills, seconds(SETTLED_S[0]), seconds(SETTLED_S[1]), settled_by, name="pairs")
settled.sink("settled")
settled.late.sink("unsettled")
reported.join_within(
    reported_bills, seconds(MATCHED_S[0]), seconds(MATCHED_S[1]), matched_with, how="outer", name="outer"
).sink("matched")
reported.join_as_of(reported_bills, charged_by, tolerance=seconds(CHARGED_S), how="left", name="as-of").sink(
    "charged"
)
home, elsewhere = reported.filter(is_at_home), reported.filter(is_elsewhere)
home.join_window(reported_bills, minute, matched_with, how="outer", name="of-a-minute").sink("met")
elsewhere.join_latest(home, since_home, how="left", delete_when=leaves_home, name="latest").sink("since-home")
