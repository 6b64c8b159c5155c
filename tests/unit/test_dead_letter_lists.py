"""What `bettong dead-letters list` and `show` print."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator

import pytest
from rich.cells import cell_len

from bettong.cli.dead_letters.listing import print_each, print_one, print_reasons
from bettong.frames.dead_letter_id import DeadLetterId
from bettong.inspection.dead_letters import Found, ResendMark
from bettong.inspection.json_lines import dead_letter_json
from bettong.inspection.reason_counts import first_line
from bettong.v1.frame_pb2 import DeadLetter

SECOND_NS = 1_000_000_000
BEGUN_NS = 1_795_680_000 * SECOND_NS
LINES = ["shop.py:12 in parse", "of/prices.py:40 in price"]
LONG = "of-a-computation-with-a-very-long-name-indeed"


def letters() -> Iterator[Found]:
    reasons = [
        ("parse", "ValueError: no [bold]price[/bold]\nand more lines\n" + "x" * 300),
        ("parse", "ValueError: no [bold]price[/bold]\nand other lines"),
        ("parse", "KeyError: 'size'"),
        (LONG, "ValueError:\x1b[31m " + "ä" * 300),
    ]
    for number in range(12_000):
        computation, reason = reasons[0 if number > 100 else number % 4]
        yield Found(
            DeadLetterId(number % 8, 1_000_000 + number, 17),
            BEGUN_NS + number * SECOND_NS,
            DeadLetter(
                computation=computation,
                reason=reason,
                origin="orders/feed-of-somebody-with-a-long-name",
                sequence=123_456_789,
                index=3,
                message=b"{}",
                traceback=LINES,
            ),
        )


Shown = Callable[[int], list[str]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """What a call prints in a terminal of so many columns."""

    def lines(columns: int, call: Callable[[], None]) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        call()
        return capsys.readouterr().out.splitlines()

    return lines


@pytest.mark.parametrize("columns", [80, 200])
def test_reasons_are_one_line_each_with_counts_and_the_newest(
    shown: Callable[..., list[str]], columns: int
) -> None:
    head, *rows, total = shown(columns, lambda: print_reasons(letters(), 20, json=False))
    assert head.split() == ["count", "computation", "newest", "(UTC)", "its", "id", "reason"]
    assert [row.split()[0] for row in rows] == ["11,950", "25", "25"]
    assert "ValueError: no [bold]" in rows[0]
    assert "7.1011999.17" in rows[0]
    assert "1:19:59" in rows[0]
    assert total == f"12,000 dead letters: parse 11,975, {LONG} 25"
    assert all(cell_len(row) <= columns for row in rows)
    assert ("more lines" in "".join(rows)) is False
    assert all(row.isprintable() for row in rows)
    if columns == 200:
        assert LONG[-15:] in rows[1] + rows[2]
        assert max(map(cell_len, rows)) == 200, "it uses what room there is"


def test_reasons_beyond_the_limit_are_spoken_of(shown: Callable[..., list[str]]) -> None:
    _, row, _, more = shown(80, lambda: print_reasons(letters(), 1, json=False))
    assert row.split()[0] == "11,950"
    assert more == "2 more reasons: --limit 3"


def test_reasons_as_json_are_an_object_a_line(shown: Callable[..., list[str]]) -> None:
    found = [json.loads(line) for line in shown(80, lambda: print_reasons(letters(), 2, json=True))]
    assert found[0] == {
        "computation": "parse",
        "reason": "ValueError: no [bold]price[/bold]",
        "count": 11_950,
        "newest": "7.1011999.17",
        "taken_in": "2026-11-26 11:19:59.000",
        "origin": "orders/feed-of-somebody-with-a-long-name",
    }
    assert len(found) == 2


@pytest.mark.parametrize("columns", [80, 200])
def test_each_is_one_line(shown: Callable[..., list[str]], columns: int) -> None:
    marks = {DeadLetterId(7, 1_011_999, 17): ResendMark(0, done=True)}
    head, *rows, total, older = shown(columns, lambda: print_each(letters(), marks, 3, None, json=False))
    assert len(rows) == 3
    assert all(cell_len(row) <= columns for row in rows)
    assert "sent again: ValueError" in rows[0]
    assert ("origin" in head) == (columns == 200)
    assert total == f"12,000 dead letters: parse 11,975, {LONG} 25"
    assert older == "older ones: --before 5.1011997.17"


def test_each_as_json_has_the_traceback(shown: Callable[..., list[str]]) -> None:
    (line,) = shown(80, lambda: print_each(letters(), {}, 1, None, json=True))
    assert json.loads(line)["traceback"] == LINES


@pytest.mark.parametrize(
    ("message", "listed"),
    [
        (b"x" * 200, "x" * 200),
        (b"x" * 201, "x" * 200),
        ("é".encode() * 150, "é" * 100),
        (b"x" + "é".encode() * 100, "x" + "é" * 99),
        ("😀".encode() * 60, "😀" * 50),
        (b"xyz" + "😀".encode() * 60, "xyz" + "😀" * 49),
        (b"\xff" * 300, "base64:" + base64.b64encode(b"\xff" * 200).decode()),
        (b"x" * 198 + b"\xff\xff\xff\xff", "base64:" + base64.b64encode(b"x" * 198 + b"\xff\xff").decode()),
    ],
)
def test_a_list_as_json_has_the_beginning_of_a_message_and_says_so(
    shown: Callable[..., list[str]], message: bytes, listed: str
) -> None:
    """Cut between characters, so that text stays text."""
    found = Found(DeadLetterId(0, 1, 0), BEGUN_NS, DeadLetter(computation="parse", message=message))
    (line,) = shown(80, lambda: print_each([found], {}, 20, None, json=True))
    values = json.loads(line)
    assert (values["message"], values["message_truncated"], values["truncated"]) == (
        listed,
        len(message) > 200,
        False,
    )


def test_one_as_json_has_its_whole_message() -> None:
    found = Found(DeadLetterId(0, 1, 0), BEGUN_NS, DeadLetter(message=b"x" * 300, truncated=True))
    values = json.loads(dead_letter_json(found, None))
    assert (values["message"], values["message_truncated"], values["truncated"]) == ("x" * 300, False, True)


def test_one_is_shown_with_the_lines_of_its_traceback(shown: Callable[..., list[str]]) -> None:
    found = next(letters())
    lines = shown(80, lambda: print_one(found, "goes to source orders", "{}"))
    at = next(number for number, line in enumerate(lines) if line.startswith("raised at"))
    assert lines[at] == "raised at    shop.py:12 in parse"
    assert lines[at + 1] == "             of/prices.py:40 in price"
    assert lines[-2:] == ["retry        goes to source orders", "{}"]
    del found.dead_letter.traceback[:]
    assert not any("raised at" in line for line in shown(80, lambda: print_one(found, "no", "{}")))


def test_none_are_none(shown: Callable[..., list[str]]) -> None:
    assert shown(80, lambda: print_reasons([], 20, json=False)) == ["0 dead letters"]
    assert shown(80, lambda: print_each([], {}, 20, None, json=False)) == ["0 dead letters"]


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        ("ValueError: a\nb", "ValueError: a"),
        ("  \nValueError: a", "ValueError: a"),
        ("ValueError:\n no price", "ValueError: no price"),
        ("", ""),
        ("x" * 1000, "x" * 300),
    ],
)
def test_a_reason_is_told_by_its_first_line(reason: str, line: str) -> None:
    assert first_line(reason) == line
