"""The lines above the tables of `bettong top`: whether all of it works, and the totals. Pure."""

from __future__ import annotations

from rich.text import Text

from bettong.cli.account_tables import differences
from bettong.cli.printable import printable
from bettong.cli.status_texts import complaints, duration, stuck
from bettong.cli.top.lines import is_well, stage_lines
from bettong.cli.top.texts import (
    BAD,
    MUTED,
    WELL,
    WORSE,
    begun,
    count,
    curve,
    milliseconds,
    seconds,
)
from bettong.inspection.deployment import Inspection
from bettong.inspection.overview import stands_still
from bettong.inspection.services import UNKNOWN
from bettong.inspection.trends import Since, longest
from bettong.inspection.watched import Watched
from bettong.metrics import LATENCY_WINDOW_S

# Three missed answers: the data on the screen is out of date.
STALE_S = 3.0
Part = tuple[str, str]
_LABEL_WIDTH = 9
_NUMBER_WIDTH = 25


def verdict(found: Watched | None, fault: str) -> Part:
    """In a word or two whether all of it works, and the style. `fault`: why the deployment cannot be read."""
    if found is None:
        return (f"NO ANSWER: {printable(fault)}" if fault else "connecting ..."), BAD
    if fault:
        return f"NO ANSWER: {printable(fault)}", WORSE
    if found.found.goes_on:
        return "all works", WELL
    return f"HELD UP: {printable(', '.join(_held_up(found.found)))}", WORSE


def _held_up(found: Inspection) -> list[str]:
    still = sum(map(stands_still, found.partitions))
    return [
        *([f"no answer from {' and '.join(found.away)}"] if found.away else []),
        *(
            f"{row.name} {row.state}"
            for row in found.services
            if not is_well(row) and row.state != UNKNOWN and row.name not in found.away
        ),
        *([f"{still:,} {'partition stands' if still == 1 else 'partitions stand'} still"] if still else []),
        *([f"{len(found.overview.gaps):,} wait for a lost frame"] if found.overview.gaps else []),
    ]


def staleness(age_s: float) -> str:
    """How old the numbers are, once they are out of date."""
    return f"STALE, {duration(age_s)} old" if age_s >= STALE_S else ""


def numbers(found: Watched, width: int) -> list[list[Part]]:
    """Messages in and out, latency, lag, and messages not processed: a line each."""
    if found.numbers is None:
        return [[("no numbers: Redis, which has them, has not answered yet", BAD)]]
    total, rates = found.numbers.overview, found.trends
    bars = curve(found.rates, max(0, width - _LABEL_WIDTH - _NUMBER_WIDTH - 11))
    p50, p99 = (
        f"{milliseconds(each)} ms" if each is not None else "-" for each in (total.p50_ms, total.p99_ms)
    )
    waits = _longest_lag(found)
    late = sum(row.late for row in found.numbers.stages)
    counts = ((total.dead_letters, "dead letters"), (total.skipped, "messages skipped"), (late, "late"))
    failed = [(f"{number:,} {what}   ", BAD if number else MUTED) for number, what in counts]
    return [
        [
            _label("in"),
            (f"{_per_second(rates.messages_per_s):<{_NUMBER_WIDTH}}", "bold"),
            (bars, "$text-primary"),
            (f"  last {len(found.rates)} s" if bars else "", MUTED),
        ],
        [
            _label("out"),
            (f"{_per_second(rates.results_per_s):<{_NUMBER_WIDTH}}", "bold"),
            (f"{total.messages:,} in, {total.results:,} out", MUTED),
        ],
        [
            _label("latency"),
            (f"{f'p99 {p99}':<{_NUMBER_WIDTH}}", "bold"),
            (f"p50 {p50}; client to delivery, of {LATENCY_WINDOW_S} s", MUTED),
        ],
        [
            _label("lag"),
            (f"{count(total.lag)} records" if total.lag is not None else "unknown", "bold"),
            (f", the next one waits for {seconds(waits)} s" if waits and waits.seconds else "", "bold"),
        ],
        [_label("failed"), *failed],
    ]


def troubles(found: Watched) -> list[str]:
    """Problems that an operator may want to act on, a line each: the texts of `bettong status`."""
    of_numbers = found.numbers if found.numbers is not None else found.found
    lines = [
        *stuck(of_numbers.partitions),
        *complaints(of_numbers.overview),
        *differences(found.accounts),
    ]
    return [*found.found.unknown, *(Text.from_markup(line).plain for line in lines)]


def trouble_lines(found: Watched, width: int, lines_max: int) -> list[Part]:
    """As many of the problems as fit; the last line counts the others."""
    texts = troubles(found)
    if not texts:
        return []
    fits = texts if len(texts) <= lines_max else texts[: lines_max - 1]
    parts = [(f"! {begun(printable(text), width - 2)}", BAD) for text in fits]
    if len(fits) < len(texts):
        parts.append((f"! {len(texts) - len(fits)} more: bettong status", BAD))
    return parts


def _label(text: str) -> Part:
    return f"{text:<{_LABEL_WIDTH}}", MUTED


def _per_second(rate: float | None) -> str:
    return "- messages/s" if rate is None else f"{rate:,.0f} messages/s"


def _longest_lag(found: Watched) -> Since | None:
    return longest(line.trend.lag for line in stage_lines(found))
