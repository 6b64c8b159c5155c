"""Commands that pages, alerts and messages name are there, with these flags: who is woken types them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from tests.samples.page_commands import flaw
from tests.tidy.source import Source, sources

NAMED = re.compile(r"`bettong ([^`]+)`")
# A message of several literals is one text.
JOINT = re.compile(r'"\s*\n\s*f?"')
READ = re.compile(r"(docs|src|services|deploy|examples)/.*\.(md|py|yaml|tpl|txt|js)$|README\.md$")
# Of the time when they were made, and templates of what is rendered.
LEFT_OUT = re.compile(r"docs/(decisions/|performance-history\.md|render\w*\.py)")


def named(source: Source) -> Iterator[list[str]]:
    for command in NAMED.findall(JOINT.sub("", "\n".join(source.lines))):
        yield shlex.split(command.replace("\n", " "), comments=True)


def test_a_command_that_is_named_exists_with_its_flags() -> None:
    read = [each for each in sources() if READ.match(str(each.path)) and not LEFT_OUT.match(str(each.path))]
    found = [(str(each.path), words) for each in read for words in named(each)]
    assert len(found) > 200, "the pattern misses them"
    assert [f"{path}: {' '.join(words)}: {why}" for path, words in found if (why := flaw(words))] == []


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("status --json", ""),
        ("state get APP.py ann", ""),
        ("dead-letters", ""),
        ("stat --json", "there is no command stat"),
        ("state get APP.py --key ann", "there is no flag --key"),
    ],
)
def test_what_is_wrong_with_a_command_is_said(command: str, why: str) -> None:
    assert flaw(command.split()) == why
