"""A plugin of pytest: where two lists of messages, or two outcomes of `bettong.testing`, differ, and in which fields.

    assert outcome.outputs["counts"] == [Count("a", 1), Count("a", 2)]

    E   AssertionError: assert 3 messages, expected 2
    E       0   Count(word='a', total=1)
    E       1 ~ Count(word='a', total=3)
    E           total: 3, expected 2
    E       2 + Count(word='b', total=1)    (not expected)

Pytest finds it by itself where Bettong is installed. It imports nothing of Bettong, for it is loaded with every pytest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from difflib import SequenceMatcher
from typing import Any, NamedTuple, TypeGuard

# Lines around a difference that show what is the same, and lines in all.
_AROUND = 2
_LINES_MAX = 60
# The least width of a message's number.
_WIDTH = 3
# The most work to find out which messages belong together, in pairs of like ones times messages: a second or two. It
# grows with the square or the cube of the messages. Beyond it, of some thousand, those at one place are compared.
_WORK_MAX = 30_000_000


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """See pytest. Of what is no stream of messages pytest says itself what differs."""
    if op != "==":
        return None
    if _is_stream(left) and _is_stream(right) and (left or right):
        return stream_difference(left, right)
    if type(left).__name__ == "Outcome" and type(left) is type(right):
        lines = ["the outcomes differ"]
        for field in fields(left):  # type: ignore[arg-type]
            found, expected = getattr(left, field.name), getattr(right, field.name)
            if found != expected:
                lines.append(f"{field.name}:")
                lines += [f"  {line}" for line in _of_field(found, expected)]
        return lines
    return None


def stream_difference(found: Sequence[Any], expected: Sequence[Any]) -> list[str]:
    """Two lists of messages side by side: what is alike, what is more, what is missing, and fields that differ."""
    lines = list(_compared(found, expected))
    changed = [number for number, line in enumerate(lines) if line.sign != " "]
    near = {
        number + by
        for number in changed
        for by in range(-_AROUND, _AROUND + 1)
        if 0 <= number + by < len(lines)
    }
    width = max([_WIDTH, *(len(str(lines[number].number)) for number in near)])
    shown: list[str] = []
    for number, line in enumerate(lines):
        if number in near:
            shown.append(f"{line.number:>{width}} {line.sign} {line.text}")
        elif not shown or shown[-1] != "  ...":
            shown.append("  ...")
    counted = f"{_counted(found)}, expected {len(expected)}"
    return [counted, *shown[:_LINES_MAX], *(["  ..."] if len(shown) > _LINES_MAX else [])]


class _Line(NamedTuple):
    """`number`: of a message; empty for one of its fields."""

    number: int | str
    sign: str
    text: str


def _compared(found: Sequence[Any], expected: Sequence[Any]) -> Iterator[_Line]:
    texts, others = list(map(repr, found)), list(map(repr, expected))
    for first, last, start, stop in _parts(texts, others):
        both = min(last - first, stop - start)
        for by in range(both):
            own, other = found[first + by], expected[start + by]
            alike = texts[first + by] == others[start + by] and _equal(own, other)
            yield _Line(first + by, " " if alike else "~", texts[first + by])
            if not alike:
                yield from (_Line("", "~", f"  {text}") for text in _fields(own, other))
        for number in range(first + both, last):
            yield _Line(number, "+", f"{texts[number]}    (not expected)")
        for number in range(start + both, stop):
            yield _Line(number, "-", f"{others[number]}    (missing)")


def _parts(texts: list[str], others: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """From where to where each part is in both. Of one part, messages at one place belong together."""
    first, last, stop = 0, len(texts), len(others)
    while first < min(last, stop) and texts[first] == others[first]:
        first += 1
    while first < min(last, stop) and texts[last - 1] == others[stop - 1]:
        last, stop = last - 1, stop - 1
    yield 0, first, 0, first
    own, other = texts[first:last], others[first:stop]
    often = Counter(other)
    if sum(often[text] for text in own) * max(len(own), len(other)) > _WORK_MAX:
        yield first, last, first, stop
    else:
        for _, *positions in SequenceMatcher(None, own, other, autojunk=False).get_opcodes():
            begin, end, start, until = (position + first for position in positions)
            yield begin, end, start, until
    yield last, len(texts), stop, len(others)


def _fields(found: Any, expected: Any) -> Iterator[str]:
    if type(found) is not type(expected) or not is_dataclass(found):
        yield f"expected {expected!r}"
        return
    is_reported = False
    for field in fields(found):
        own, other = getattr(found, field.name), getattr(expected, field.name)
        if repr(own) != repr(other):
            yield f"{field.name}: {own!r}, expected {other!r}"
            is_reported = True
        elif not _equal(own, other):
            why = "NaN equals nothing" if own != own else "alike as text, and not equal"  # noqa: PLR0124
            yield f"{field.name}: {own!r}, expected {other!r} ({why})"
            is_reported = True
    if not is_reported:
        yield f"alike as text, and not equal: see {type(found).__name__}.__eq__"


def _equal(one: Any, other: Any) -> bool:
    """As a list compares them. What cannot be compared, such as arrays, is equal if its text is."""
    try:
        return one is other or bool(one == other)
    except Exception:  # noqa: BLE001 - of a user's class
        return True


def _of_field(found: Any, expected: Any) -> Iterator[str]:
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in dict.fromkeys((*found, *expected)):
            own, other = found.get(key), expected.get(key)
            if own == other:
                continue
            if _is_stream(own) and _is_stream(other):
                yield f"{key!r}: " + "\n  ".join(stream_difference(own, other))
            else:
                yield f"{key!r}: {own!r}, expected {other!r}"
    elif _is_stream(found) and _is_stream(expected):
        yield from stream_difference(found, expected)
    else:
        yield f"{found!r}, expected {expected!r}"


def _counted(found: Sequence[Any]) -> str:
    return f"{len(found)} message{'' if len(found) == 1 else 's'}"


def _is_stream(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list) and all(
        is_dataclass(each) and not isinstance(each, type) for each in value
    )
