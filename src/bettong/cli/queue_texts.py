"""Texts of `bettong status --queues` and `bettong top`: what waits in which service, and what holds it up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bettong.cli.fitting_tables import print_fitting
from bettong.cli.printable import escaped, printable
from bettong.inspection.queues import QueueKind

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from bettong.inspection.queues import CreditSummary, QueueLine, Queues
    from bettong.queued import ClientCredits, SubscriberQueue

_WAITS = {
    QueueKind.DECODING: "to be decoded",
    QueueKind.KAFKA: "for Kafka",
    QueueKind.WORKER: "for workers",
    QueueKind.SINK: "for a sink",
}


def show_queues(found: Queues, console: Console) -> None:
    """Prints the queues, the clients with least credit, and the slowest subscribers."""
    if not found.lines:
        console.print("no service reports its queues")
        return
    print_fitting(console, queues_table(found.lines))
    for each in found.credits:
        console.print(printable(credits_text(each)), markup=False, soft_wrap=True)
    if found.clients:
        print_fitting(console, clients_table(found.clients))
    if found.subscribers:
        print_fitting(console, subscribers_table(found.subscribers))


def queues_table(found: Sequence[QueueLine]) -> Table:
    """A row for each queue, in the order in which messages pass them."""
    table = _table("waits", "in", "of", "frames", "has held up for", left=3)
    for line in found:
        table.add_row(
            _WAITS[line.kind],
            escaped(line.service),
            escaped(_name(line)),
            f"{line.waiting:,}" if line.waiting is not None else "",
            _seconds(line.held_s) if line.held_s is not None else "",
        )
    return table


def clients_table(found: Sequence[tuple[str, ClientCredits]]) -> Table:
    """A row for each client, the one with least credit first."""
    table = _table("client", "of", "credits", "in flight", "without for", left=2)
    for sender, each in found:
        waited = _seconds(each.waited_s) if not each.credits else ""
        table.add_row(
            escaped(each.stream), escaped(sender), f"{each.credits:,}", f"{each.in_flight:,}", waited
        )
    return table


def subscribers_table(found: Sequence[tuple[str, SubscriberQueue]]) -> Table:
    """A row for each subscriber, the one that has not read for longest first."""
    table = _table("subscriber", "of", "sink", "not read for", "unread bytes", "lag", left=3)
    for receiver, each in found:
        table.add_row(
            escaped(each.address),
            escaped(receiver),
            escaped(each.sink),
            _seconds(each.stalled_s),
            f"{each.waiting_bytes:,}",
            f"{each.lag:,}" if each.lag is not None else "",
        )
    return table


def credits_text(found: CreditSummary) -> str:
    """The credits of a sender's clients, in a line."""
    if found.least is None:
        return f"{found.service}: no clients"
    waited = f", for {_seconds(found.waited_s)} at most" if found.without else ""
    return (
        f"{found.service}: {found.clients:,} clients with {found.credits:,} credits together, {found.least:,} at least;"
        f" {found.without:,} without{waited}"
    )


def service_texts(found: Queues, service: str) -> Iterator[str]:
    """A line about the queues of a service, and one about its clients' credits."""
    own = [line for line in found.lines if line.service == service]
    waiting = [f"{line.waiting:,} {_what(line)}" for line in own if line.waiting]
    held = [f"{_seconds(line.held_s)} {_what(line)}" for line in own if line.held_s and line.held_s >= 1]
    if own:
        yield f"frames that wait: {', '.join(waiting) or 'none'}"
    if held:
        yield f"has held up since it began: {', '.join(held)}"
    yield from (credits_text(each) for each in found.credits if each.service == service)


def _name(line: QueueLine) -> str:
    return line.name or ("files and Redis" if line.kind is QueueKind.SINK else "")


def _what(line: QueueLine) -> str:
    name = _name(line)
    return f"{_WAITS[line.kind]} ({name})" if name else _WAITS[line.kind]


def _seconds(seconds: float) -> str:
    return f"{seconds:,.1f} s"


def _table(*columns: str, left: int) -> Table:
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 1))
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < left else "right")
    return table
