"""The right answers to the workloads by event time, as one would write them without any framework.

Each takes all messages as bytes, in the order of their times, and returns all results that are due when the last one
has come. So it is also the plain loop that a peer's speed is compared with.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from benchmarks.peers.events import (
    BOUND_MS,
    COUNT,
    EVENT,
    MS_NS,
    OVERDUE,
    PAIR,
    PATIENCE_MS,
    PLACED,
    SIZE_MS,
    SLIDE_MS,
    WINDOW_MS,
)

# Messages and the sum of their values, by key.
_Counts = dict[int, list[int]]


def tumbling_counts(messages: Sequence[bytes]) -> list[bytes]:
    """Count and sum of each window that is over."""
    results: list[bytes] = []
    for end_ns, counts in _stretches(messages, WINDOW_MS * MS_NS):
        results += [COUNT.pack(key, end_ns, count, total) for key, (count, total) in counts.items()]
    return results


def sliding_counts(messages: Sequence[bytes]) -> list[bytes]:
    """Count and sum of each window that is over: those of the one before, without a slide's and with another's."""
    slide_ns, slides = SLIDE_MS * MS_NS, SIZE_MS // SLIDE_MS
    results: list[bytes] = []
    window: _Counts = {}
    within: deque[tuple[int, _Counts]] = deque()
    end_ns = 0

    def close_until(limit_ns: int) -> None:
        nonlocal end_ns
        while within and end_ns <= limit_ns:
            if within[0][0] <= end_ns - slides * slide_ns:
                _change(window, within.popleft()[1], -1)
            results.extend(COUNT.pack(key, end_ns, count, total) for key, (count, total) in window.items())
            end_ns += slide_ns

    for slide_end_ns, counts in _stretches(messages, slide_ns):
        close_until(slide_end_ns - slide_ns)
        end_ns = slide_end_ns
        within.append((slide_end_ns, counts))
        _change(window, counts, 1)
    if messages:
        close_until(EVENT.unpack(messages[-1])[1])
    return results


def pairs_within(messages: Sequence[bytes]) -> list[bytes]:
    """Each pair of a left message, whose value is even, and a right one of its key, at most the bound apart."""
    results: list[bytes] = []
    kept = [defaultdict[int, deque[tuple[int, int]]](deque) for _ in range(2)]
    for message in messages:
        key, at_ns, value = EVENT.unpack(message)
        side = value & 1
        partners = kept[1 - side][key]
        while partners and partners[0][0] < at_ns - BOUND_MS * MS_NS:
            partners.popleft()
        if side:
            results += [PAIR.pack(key, other, value) for _, other in partners]
        else:
            results += [PAIR.pack(key, value, other) for _, other in partners]
        kept[side][key].append((at_ns, value))
    return results


def overdue_orders(messages: Sequence[bytes]) -> list[bytes]:
    """Each order that nobody had approved, and its key had not placed again, when its time was over."""
    results: list[bytes] = []
    waiting: dict[int, int] = {}
    timers: deque[tuple[int, int]] = deque()
    for message in messages:
        key, at_ns, kind = EVENT.unpack(message)
        while timers and timers[0][0] <= at_ns:
            due_ns, ordered = timers.popleft()
            if waiting.get(ordered) == due_ns:
                del waiting[ordered]
                results.append(OVERDUE.pack(ordered, due_ns))
        if kind == PLACED:
            waiting[key] = at_ns + PATIENCE_MS * MS_NS
            timers.append((waiting[key], key))
        else:
            waiting.pop(key, None)
    return results


def _stretches(messages: Sequence[bytes], length_ns: int) -> Iterator[tuple[int, _Counts]]:
    """The counts of each stretch of time that is over and has messages, behind its end."""
    counts: _Counts = {}
    end_ns = 0
    for message in messages:
        key, at_ns, value = EVENT.unpack(message)
        if at_ns >= end_ns:
            if counts:
                yield end_ns, counts
                counts = {}
            end_ns = (at_ns // length_ns + 1) * length_ns
        found = counts.get(key)
        if found is None:
            counts[key] = [1, value]
        else:
            found[0] += 1
            found[1] += value


def _change(window: _Counts, counts: _Counts, sign: int) -> None:
    """Adds the counts, or takes them away; a key without messages has none."""
    for key, (count, total) in counts.items():
        found = window.setdefault(key, [0, 0])
        found[0] += sign * count
        found[1] += sign * total
        if not found[0]:
            del window[key]
