"""Comparing outputs: each way of being wrong is found, and told from the others."""

import json
from pathlib import Path

import pytest

from bettong.application.plan import plan
from bettong.chaos.outputs import Difference, defaults, differences, messages, table, without_numbers
from bettong.chaos.spec import Compare, OutputComparison, Split
from bettong.edges.application_file import load
from bettong.errors import SchemaError

ROOT = Path(__file__).parents[2]
BY_KEY = OutputComparison(compare=Compare.KEYS, key="k")
GOLDEN = b'{"k":"a","n":1}\n{"k":"b","n":1}\n{"k":"a","n":2}\n'


def found(content: bytes, output: OutputComparison = BY_KEY) -> list[Difference]:
    return differences(
        table([("00000.jsonl", GOLDEN)], output), table([("00000.jsonl", content)], output), output.compare
    )


def test_equal_output_has_no_differences_also_in_another_order_of_keys() -> None:
    one, other, last = GOLDEN.splitlines(keepends=True)
    assert found(GOLDEN) == []
    assert found(other + one + last) == []


@pytest.mark.parametrize(
    ("content", "difference"),
    [
        (b'{"k":"a","n":1}\n{"k":"b","n":1}\n', Difference("a", 1, 0, 0, 0)),
        (GOLDEN + b'{"k":"a","n":2}\n', Difference("a", 0, 1, 0, 0)),
        (GOLDEN + b'{"k":"c","n":1}\n', Difference("c", 0, 0, 1, 0)),
        (b'{"k":"a","n":2}\n{"k":"b","n":1}\n{"k":"a","n":1}\n', Difference("a", 0, 0, 0, 2)),
        (b'{"k":"a","n":1}\n{"k":"b","n":7}\n{"k":"a","n":2}\n', Difference("b", 1, 0, 1, 0)),
    ],
    ids=["lost", "doubled", "unexpected", "misplaced", "changed"],
)
def test_what_is_wrong_is_reported_by_key(content: bytes, difference: Difference) -> None:
    assert found(content) == [difference]


def test_order_counts_in_files_and_not_among_messages() -> None:
    one, other, last = GOLDEN.splitlines(keepends=True)
    assert found(other + one + last, OutputComparison(compare=Compare.MESSAGES)) == []
    (wrong,) = found(other + one + last, OutputComparison(compare=Compare.BYTES))
    assert wrong == Difference("00000.jsonl", 0, 0, 0, 2)


def test_a_file_of_another_name_is_wrong_byte_for_byte() -> None:
    output = OutputComparison(compare=Compare.BYTES)
    wrong = differences(table([("0", b"x\n")], output), table([("1", b"x\n")], output), output.compare)
    assert [(each.label, each.lost, each.unexpected) for each in wrong] == [("0", 1, 0), ("1", 0, 1)]


@pytest.mark.parametrize(
    ("split", "content", "expected"),
    [
        ("lines", b"a\nbc\n", [b"a", b"bc"]),
        ("prefixed", b"\0\0\0\1a\0\0\0\0", [b"\0\0\0\1a", b"\0\0\0\0"]),
        (2, b"abcd", [b"ab", b"cd"]),
        ("whole", b"abc", [b"abc"]),
        ("whole", b"", []),
    ],
)
def test_files_are_split_into_messages(split: Split, content: bytes, expected: list[bytes]) -> None:
    assert list(messages(content, split)) == expected


@pytest.mark.parametrize(
    ("split", "content"), [("prefixed", b"\0\0\0\2a"), ("prefixed", b"\0\0"), (3, b"abcd")]
)
def test_a_file_that_ends_inside_a_message_is_an_error(split: Split, content: bytes) -> None:
    with pytest.raises(SchemaError, match="ends inside a message"):
        list(messages(content, split))


def test_a_key_may_be_bytes_of_a_message() -> None:
    output = OutputComparison(compare=Compare.KEYS, split=3, key=(1, 2))
    assert {label: len(found) for label, found in table([("f", b"xAyxBzxAw")], output).items()} == {
        "A": 2,
        "B": 1,
    }


def test_behind_one_stage_files_are_compared_and_behind_a_second_one_keys() -> None:
    market = defaults(plan(load(str(ROOT / "examples" / "market_spread" / "risk_check.py"))))
    assert market["rejected"] == OutputComparison(compare=Compare.BYTES, split="whole")
    words = defaults(plan(load(str(ROOT / "examples" / "word_count.py"))))
    assert words["counts"] == OutputComparison(compare=Compare.KEYS, key="word")
    assert words["dead-letters"] == OutputComparison(compare=Compare.MESSAGES)


def test_dead_letters_are_compared_without_their_numbers() -> None:
    def dead_letter(sequence: int, reason: str) -> bytes:
        values = {"computation": "f", "reason": reason, "origin": "a/1", "sequence": sequence, "message": "x"}
        return json.dumps(values).encode() + b"\n"

    assert without_numbers(dead_letter(1, "bad")) == without_numbers(dead_letter(9, "bad"))
    assert without_numbers(dead_letter(1, "bad")) != without_numbers(dead_letter(1, "worse"))
