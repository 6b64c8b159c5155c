"""Folders named after fields: the names are safe and unique."""

from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.schema.schema import schema_of
from bettong_receiver.connectors.folder_names import NAME_BYTES_MAX, folders_by, name_fault


class Colour(Enum):
    RED = "dark red"


@dataclass
class Everything:
    text: str
    number: int
    truth: bool
    day: date
    colour: Colour
    name: UUID
    perhaps: str | None


def folder(**values: Any) -> str:
    fields = {field.name: field for field in schema_of(Everything).fields}
    return folders_by([fields[name] for name in values])(tuple(values.values()))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"text": "plain-Text_1.5 é"}, "text=plain-Text_1.5 é"),
        ({"text": "../../etc/passwd"}, "text=..%2F..%2Fetc%2Fpasswd"),
        ({"text": ".."}, "text=.."),
        ({"text": "03:05"}, "text=03%3A05"),
        ({"text": "a=b%2F"}, "text=a%3Db%252F"),
        ({"text": "\x00\n\x7f\\"}, "text=%00%0A%7F%5C"),
        ({"text": ""}, "text=__HIVE_DEFAULT_PARTITION__"),
        ({"perhaps": None}, "perhaps=__HIVE_DEFAULT_PARTITION__"),
        ({"perhaps": "x"}, "perhaps=x"),
        ({"number": -7, "truth": True}, "number=-7/truth=true"),
        ({"truth": False}, "truth=false"),
        ({"day": date(2026, 11, 26)}, "day=2026-11-26"),
        ({"colour": Colour.RED}, "colour=dark red"),
        ({"name": UUID(int=1)}, "name=00000000-0000-0000-0000-000000000001"),
    ],
)
def test_folders_are_named_after_values(values: dict[str, Any], expected: str) -> None:
    assert folder(**values) == expected


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_no_text_escapes_from_its_folder_or_shares_another_ones(one: str, other: str) -> None:
    found = folder(text=one, perhaps=other)
    assert found.count("/") == 1
    assert "\x00" not in found
    assert not {".", ".."} & set(found.split("/"))
    assert (folder(text=one) == folder(text=other)) == (one == other)


def test_a_name_of_the_maximum_length_is_accepted(tmp_path: Path) -> None:
    longest = folder(text="n" * (NAME_BYTES_MAX - len("text=")))
    (tmp_path / longest).mkdir()
    assert name_fault(longest) is None
    assert name_fault(f"{longest}n") is not None
