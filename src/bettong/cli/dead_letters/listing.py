"""The output of `bettong dead-letters list` and `show`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from bettong.cli.printable import printable, printable_lines

if TYPE_CHECKING:
    from rich.console import Console

    from bettong.frames.dead_letter_id import DeadLetterId
    from bettong.inspection.dead_letters import Found, Order, ResendMark


def print_reasons(found: Iterable[Found], limit: int, *, json: bool) -> bool:
    """Prints the number of dead letters by computation and reason, the most frequent first; whether there is any."""
    from bettong.cli.dead_letters.tables import reasons_table
    from bettong.inspection.json_lines import reason_json
    from bettong.inspection.reason_counts import ReasonCounts, by_computation, counted, most_frequent

    counts = counted(ReasonCounts(), found)
    rows = most_frequent(counts)
    if json:
        for row in rows[:limit]:
            sys.stdout.write(reason_json(row) + "\n")
        return bool(rows)
    console = _console()
    if rows:
        console.print(reasons_table(rows[:limit], console.width))
    _print_total(console, by_computation(counts))
    if len(rows) > limit:
        console.print(f"{len(rows) - limit} more reasons: --limit {len(rows)}", style="dim")
    return bool(rows)


def print_each(
    found: Iterable[Found],
    marks: Mapping[DeadLetterId, ResendMark],
    limit: int,
    before: Order | None,
    *,
    json: bool,
) -> bool:
    """Prints the newest `limit` dead letters that are older than `before`, newest first; whether there is any."""
    from bettong.cli.dead_letters.tables import dead_letters_table
    from bettong.inspection.dead_letters import page
    from bettong.inspection.json_lines import dead_letter_json

    newest, counts = page(found, limit, before)
    if json:
        for each in newest:
            sys.stdout.write(dead_letter_json(each, marks.get(each.id)) + "\n")
        return bool(counts)
    console = _console()
    if newest:
        console.print(dead_letters_table(newest, marks, console.width))
    _print_total(console, counts)
    if len(newest) == limit and counts.total() > limit:
        console.print(f"older ones: --before {newest[-1].id}", style="dim")
    return bool(counts)


def print_one(found: Found, retry: str, message: str) -> None:
    """Prints all fields of a dead letter. `retry`: whether it can be sent again; `message`: its text."""
    from bettong.inspection.text import moment

    dead_letter = found.dead_letter
    fields = {
        "id": [str(found.id)],
        "taken in": [f"{moment(found.time_ns)} UTC"],
        "computation": [dead_letter.computation],
        "reason": [dead_letter.reason],
        "raised at": list(dead_letter.traceback),
        "origin": [dead_letter.origin],
        "sequence": [str(dead_letter.sequence)],
        "index": [str(dead_letter.index)],
        "message is": [
            ("as received" if dead_letter.as_received else "JSON")
            + (", only its beginning" if dead_letter.truncated else "")
        ],
        "retry": [retry],
    }
    console = _console()
    for name, lines in fields.items():
        for label, line in zip((name, *[""] * len(lines)), lines, strict=False):
            console.print(f"{label:<12} {printable_lines(line)}", markup=False, soft_wrap=True)
    console.print(printable_lines(message), markup=False, soft_wrap=True)


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def _print_total(console: Console, counts: Counter[str]) -> None:
    each = ", ".join(f"{name or 'others'} {count:,}" for name, count in counts.most_common())
    text = f"{counts.total():,} dead letters{': ' if each else ''}{each}"
    console.print(printable(text), markup=False, soft_wrap=True)
