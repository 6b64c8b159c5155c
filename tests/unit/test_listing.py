"""Lists of names and of texts for people."""

import pytest

from bettong.listing import first_named, first_texts


@pytest.mark.parametrize(
    ("names", "text"),
    [([], ""), (["a"], "a"), (["a", 2], "a, 2"), (["a", "b", "c"], "a, b and 1 more")],
)
def test_the_first_names_are_given_and_the_others_are_counted(names: list[object], text: str) -> None:
    assert first_named(names, 2) == text


@pytest.mark.parametrize(
    ("texts", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a; b"),
        (["a", "b", "c"], "a; b; and 1 more"),
        (["a", "b"] + ["c"] * 1000, "a; b; and 1,000 more"),
    ],
)
def test_the_first_texts_are_shown_and_the_others_are_counted(texts: list[str], text: str) -> None:
    assert first_texts(texts, 2) == text
