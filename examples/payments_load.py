"""Sends payments to the application of the chart's values-dev.yaml, and checks that every total comes: `make load`.

Each run has accounts of its own, so that its totals are known. Ends with 1 when the right ones have not come in time.
"""

import argparse
import json
import signal
import sys
import time
import uuid
from collections import defaultdict
from dataclasses import dataclass
from types import FrameType

from bettong.client import Sender, Subscriber

FRAME = 1000  # messages


@dataclass
class Payment:
    """What the source `payments` takes."""

    account: str
    amount: float


def payments(run: str, count: int, accounts: int) -> list[Payment]:
    """`count` payments of whole amounts, to each of the accounts of a run in turn."""
    return [Payment(f"{run}-{number % accounts}", float(number % 100)) for number in range(count)]


def totals(sent: list[Payment]) -> dict[str, float]:
    """What each account has in the end."""
    found: defaultdict[str, float] = defaultdict(float)
    for payment in sent:
        found[payment.account] += payment.amount
    return dict(found)


def send(target: str, sent: list[Payment]) -> None:
    """Returns when all are durable."""
    with Sender(target, "payments") as sender:
        for begin in range(0, len(sent), FRAME):
            sender.send_messages(sent[begin : begin + FRAME])


def await_results(target: str, run: str, sent: list[Payment]) -> None:
    """Returns when each payment has had its result. Raises SystemExit when an account's last one is wrong."""
    found: dict[str, float] = {}
    count = 0
    with Subscriber(target, "totals") as results:
        for result in results:
            rows = [json.loads(message) for message in result.messages]
            own = [row for row in rows if row["account"].startswith(f"{run}-")]
            found |= {row["account"]: row["total"] for row in own}
            count += len(own)
            if count >= len(sent):
                break
    if count != len(sent) or found != totals(sent):
        sys.exit(f"{count} results for {len(sent)} payments, and other totals than were paid")


def main(words: list[str]) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sender", default="127.0.0.1:7100")
    parser.add_argument("--receiver", default="127.0.0.1:7200")
    parser.add_argument("--payments", type=int, default=100_000)
    parser.add_argument("--accounts", type=int, default=100)
    parser.add_argument("--timeout-s", type=int, default=300)
    given = parser.parse_args(words)

    def too_long(_number: int, _frame: FrameType | None) -> None:
        sys.exit(f"not all results within {given.timeout_s} s: `kubectl get pods` shows who does not run")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(given.timeout_s)
    run = uuid.uuid4().hex[:12]
    sent = payments(run, given.payments, given.accounts)
    begun_s = time.monotonic()
    send(given.sender, sent)
    durable_s = time.monotonic() - begun_s
    await_results(given.receiver, run, sent)
    print(
        f"{len(sent)} payments durable after {durable_s:.1f} s, their results here after"
        f" {time.monotonic() - begun_s:.1f} s, each total right"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
