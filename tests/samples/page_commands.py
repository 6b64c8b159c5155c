"""The shell commands of a page of docs, and whether `bettong` takes them."""

import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer.main

from bettong.cli.main import app
from tests.samples.page_code import blocks

AND = "&&"


def lines(page: Path) -> list[list[str]]:
    """The words of each shell command of a page, without comments. One behind `&&` is a command of its own."""
    text = "\n".join(blocks(page, "sh")).replace("\\\n", " ")
    return [words for line in text.splitlines() for words in _commands(shlex.split(line, comments=True))]


def _commands(words: list[str]) -> Iterator[list[str]]:
    while AND in words:
        end = words.index(AND)
        yield words[:end]
        words = words[end + 1 :]
    if words:
        yield words


def of_bettong(page: Path) -> list[list[str]]:
    """What follows `bettong` in its commands, those that run in a container (behind `--`) too."""
    return [
        words[words.index("bettong") + 1 :]
        for words in lines(page)
        if "bettong" in words and (words[0] == "bettong" or words[words.index("bettong") - 1] == "--")
    ]


@cache
def _bettong() -> Any:
    return typer.main.get_command(app)


def check_command(words: list[str]) -> None:
    """That there is such a command, with these flags, and that it gets what it needs."""
    command = _bettong()
    while hasattr(command, "commands"):
        name, *words = words
        assert name in command.commands, f"bettong has no command {name}"
        command = command.commands[name]
    redirected = words.index(">") if ">" in words else len(words)
    given, rest, _ = command.make_parser(command.context_class(command)).parse_args(words[:redirected])
    assert rest == []
    missing = [each.name for each in command.params if each.required and given.get(each.name) is None]
    assert missing == []
