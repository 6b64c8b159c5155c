"""Lists of names for people."""

import pytest

from bettong.listing import first_named


@pytest.mark.parametrize(
    ("names", "text"),
    [([], ""), (["a"], "a"), (["a", 2], "a, 2"), (["a", "b", "c"], "a, b and 1 more")],
)
def test_the_first_names_are_given_and_the_others_are_counted(names: list[object], text: str) -> None:
    assert first_named(names, 2) == text
