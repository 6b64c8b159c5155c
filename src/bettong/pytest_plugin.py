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

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from difflib import SequenceMatcher
from typing import Any, TypeGuard

# Lines around a difference that show what is the same, and lines in all.
_AROUND = 2
_LINES_MAX = 60


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
    changed = [number for number, line in enumerate(lines) if line[_SIGN] != " "]
    near = {
        number + by
        for number in changed
        for by in range(-_AROUND, _AROUND + 1)
        if 0 <= number + by < len(lines)
    }
    shown: list[str] = []
    for number, line in enumerate(lines):
        if number in near:
            shown.append(line)
        elif not shown or shown[-1] != "  ...":
            shown.append("  ...")
    counted = f"{_counted(found)}, expected {len(expected)}"
    return [counted, *shown[:_LINES_MAX], *(["  ..."] if len(shown) > _LINES_MAX else [])]


# Where in a line stands what it is.
_SIGN = 4


def _compared(found: Sequence[Any], expected: Sequence[Any]) -> Iterator[str]:
    texts, others = list(map(repr, found)), list(map(repr, expected))
    for what, first, last, start, stop in SequenceMatcher(None, texts, others, autojunk=False).get_opcodes():
        if what == "equal":
            yield from (_line(number, " ", texts[number]) for number in range(first, last))
            continue
        both = min(last - first, stop - start)
        for by in range(both):
            yield _line(first + by, "~", texts[first + by])
            yield from _fields(found[first + by], expected[start + by])
        for number in range(first + both, last):
            yield _line(number, "+", f"{texts[number]}    (not expected)")
        for number in range(start + both, stop):
            yield _line(number, "-", f"{others[number]}    (missing)")


def _fields(found: Any, expected: Any) -> Iterator[str]:
    if type(found) is type(expected) and is_dataclass(found):
        for field in fields(found):
            own, other = getattr(found, field.name), getattr(expected, field.name)
            if repr(own) != repr(other):
                yield f"    ~   {field.name}: {own!r}, expected {other!r}"
    else:
        yield f"    ~   expected {expected!r}"


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


def _line(number: int, sign: str, text: str) -> str:
    return f"{number:>3} {sign} {text}"


def _counted(found: Sequence[Any]) -> str:
    return f"{len(found)} message{'' if len(found) == 1 else 's'}"


def _is_stream(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list) and all(
        is_dataclass(each) and not isinstance(each, type) for each in value
    )
