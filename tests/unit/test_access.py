"""The rule of tokens: who may do what, and files that are wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.config.access import (
    TOKEN_CHARACTERS_MAX,
    ChangeFromConsole,
    ListSources,
    Permission,
    Read,
    SeeConsole,
    TokenHolder,
    Write,
    digest,
    parse,
)

FEED, OTHER = digest("a"), digest("b")
FILE = f"""
[feed]
sha256 = "{FEED}"
write = ["orders/feed-*", "nbbo/*"]
read = ["rejected"]

[watcher]
sha256 = ["{OTHER}", "{digest("c")}"]
read = ["*"]
"""


GRANTS = parse(FILE)


def holder(token: str) -> TokenHolder:
    found = GRANTS.holder(token)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "permission",
    [
        Write("orders", "feed-1"),
        Write("orders", "feed-"),
        Write("nbbo", "x"),
        Read("rejected"),
        ListSources(),
    ],
)
def test_what_is_named_is_allowed(permission: Permission) -> None:
    assert holder("a").may(permission)


@pytest.mark.parametrize(
    "permission",
    [
        Write("orders", "other"),
        Write("orders", "a-feed-1"),
        Write("Orders", "feed-1"),
        Write("orders2", "feed-1"),
        Write("orders/feed-1", ""),
        Write("", "orders/feed-1"),
        Write("trades", "feed-1"),
        Write("", ""),
        Read("dead-letters"),
        Read("rejected2"),
        Read(""),
    ],
)
def test_what_is_not_named_is_not(permission: Permission) -> None:
    assert not holder("a").may(permission)


def test_who_may_read_all_may_write_nothing() -> None:
    assert holder("b").may(Read("dead-letters"))
    assert not holder("b").may(Write("orders", "feed-1"))


def test_a_new_token_counts_beside_the_old_one_while_both_stand() -> None:
    assert holder("b").name == holder("c").name == "watcher"


@given(st.text(max_size=50).filter(lambda token: token not in {"a", "b", "c"}))
def test_no_other_token_is_anybodys(token: str) -> None:
    assert GRANTS.holder(token) is None


@pytest.mark.parametrize(
    ("entry", "sees", "changes"),
    [
        ("", False, False),
        ("console = true", True, False),
        ("change = true", False, False),
        ("console = true\nchange = true", True, True),
    ],
)
def test_who_changes_something_from_the_console_may_see_it_too(
    entry: str, *, sees: bool, changes: bool
) -> None:
    found = parse(f'[a]\nsha256 = "{FEED}"\n{entry}\n').holder("a")
    assert found is not None
    assert (found.may(SeeConsole()), found.may(ChangeFromConsole())) == (sees, changes)


@pytest.mark.parametrize("token", [None, "", "x" * (TOKEN_CHARACTERS_MAX + 1), "\udcff", "\0", FEED])
def test_garbage_is_nobodys_token(token: str | None) -> None:
    assert GRANTS.holder(token) is None


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", ["holds no token"]),
        ("[a\n", ["not TOML"]),
        ("[a]\n", ["[a] sha256: expected"]),
        (
            '[a]\nsha256 = "secret"\nwrite = "orders"\n',
            ["[a] sha256: expected", "[a] write: expected a list"],
        ),
        (f'[a]\nsha256 = "{FEED}"\nwrite = ["orders"]\n', ["[a] write: expected"]),
        (f'[a]\nsha256 = "{FEED}"\nwrite = ["a/b/c"]\n', ["[a] write: expected"]),
        (f'[a]\nsha256 = "{FEED}"\nread = ["[ab]"]\n', ["[a] read: expected a list of sinks"]),
        (
            f'[a]\nsha256 = "{FEED}"\nsecret = 1\n',
            ["[a] secret: expected sha256, write, read, console and change"],
        ),
        ("[a]\nsha256 = []\n", ["[a] sha256: expected"]),
        ("a = 1\n", ["[a] : expected sha256"]),
        (f'[a]\nsha256 = "{FEED}"\n[b]\nsha256 = "{FEED}"\n', ["occurs twice"]),
    ],
)
def test_a_file_that_is_wrong_names_every_fault_and_no_value(text: str, faults: list[str]) -> None:
    with pytest.raises(ValueError, match=r"expected|TOML|twice") as raised:
        parse(text)
    assert all(fault in str(raised.value) for fault in faults), str(raised.value)
    assert '"secret"' not in str(raised.value)
    assert FEED not in str(raised.value)
