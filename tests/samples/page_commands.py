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
    """What follows `bettong` in its commands, those that run in a container (behind `--`, or by its shell) too."""
    return [
        words[words.index("bettong") + 1 :]
        for line in lines(page)
        for words in [line, *_in_a_shell(line)]
        if "bettong" in words and (words[0] == "bettong" or words[words.index("bettong") - 1] == "--")
    ]


def _in_a_shell(words: list[str]) -> Iterator[list[str]]:
    """The commands of the script of `sh -c`."""
    if "-c" in words and words[words.index("-c") - 1] == "sh":
        for command in words[words.index("-c") + 1].split(";"):
            yield shlex.split(command)


@cache
def _bettong() -> Any:
    return typer.main.get_command(app)


def _found(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the words name, or the group of commands that has none of the next word's name; and the rest."""
    command, rest = _bettong(), list(words)
    while hasattr(command, "commands") and rest and rest[0] in command.commands:
        command = command.commands[rest.pop(0)]
    return command, rest


def check_command(words: list[str]) -> None:
    """That there is such a command, with these flags, and that it gets what it needs."""
    command, words = _found(words)
    assert not hasattr(command, "commands"), f"bettong has no command {' '.join(words[:1])}"
    redirected = words.index(">") if ">" in words else len(words)
    given, rest, _ = command.make_parser(command.context_class(command)).parse_args(words[:redirected])
    assert rest == []
    missing = [each.name for each in command.params if each.required and given.get(each.name) is None]
    assert missing == []


def flaw(words: list[str]) -> str:
    """Which of these commands or flags there is not; "" for none. A name in capitals stands for any command."""
    command, rest = _found(words)
    if hasattr(command, "commands"):
        is_any = not rest or rest[0].startswith("-") or rest[0].isupper()
        return "" if is_any else f"there is no command {rest[0]}"
    known = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)} | {"--help"}
    strange = [word for word in rest if word.startswith("--") and word.partition("=")[0] not in known]
    return f"there is no flag {strange[0]}" if strange else ""
