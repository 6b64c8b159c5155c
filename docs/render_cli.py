"""Writes the page of the command line: every command with its arguments and options, as its help says them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer.main

from bettong.cli.main import app
from bettong.services import SERVICES

_HEAD = """# The command line

For anyone who works with `bettong` in a terminal: each command with what it takes, as `bettong COMMAND --help` says it.
[Exit codes](exit-codes.md) are the same for all. Rendered from `src/bettong/cli` by `make docs`.
"""


def cli_page() -> str:
    """The page."""
    group: Any = typer.main.get_command(app)
    panels: dict[str, list[tuple[str, Any]]] = {}
    for name, command in group.commands.items():
        if not command.hidden:
            panels.setdefault(command.rich_help_panel or "Others", []).append((f"bettong {name}", command))
    lines = [_HEAD, "| command | what it does |", "| --- | --- |"]
    for commands in panels.values():
        lines += [
            f"| [`{name}`](#{_anchor(name)}) | {_cell(_summary(command))} |" for name, command in commands
        ]
    for panel, commands in panels.items():
        lines += ["", f"## {panel}"]
        for name, command in commands:
            lines += _section(name, command)
    return "\n".join(lines) + "\n"


def _section(name: str, command: Any, level: int = 3) -> Iterator[str]:
    yield from ("", f"{'#' * level} {name}", "", _text(command.help or command.short_help or ""))
    below: dict[str, Any] = getattr(command, "commands", {})
    if below:
        for each, inner in below.items():
            if not inner.hidden:
                yield from _section(f"{name} {each}", inner, min(level + 1, 5))
        return
    if name.split()[1] in SERVICES:
        yield from ("", "Takes each of its [settings](settings.md) as a flag too.")
        return
    context = command.context_class(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    yield from ("", "```text", usage, "```")
    records = [each.get_help_record(context) for each in command.params if each.name != "help"]
    if rows := [f"| {_names(each[0])} | {_cell(each[1])} |" for each in records if each is not None]:
        yield from ("", "| takes | what it is |", "| --- | --- |", *rows)


def _names(text: str) -> str:
    return ", ".join(f"`{_cell(name)}`" for name in text.split(", "))


def _summary(command: Any) -> str:
    return _text(command.help or command.short_help or "").split("\n\n")[0].replace("\n", " ")


def _text(help_: str) -> str:
    """Without the marks of rich, and of click for what is not to be wrapped."""
    plain = re.sub(r"\[/?(?:bold|dim|italic|green|red|yellow|cyan)[^\]]*\]", "", help_.replace("\b\n", ""))
    return "\n".join(line.strip() for line in plain.strip().splitlines())


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _anchor(heading: str) -> str:
    return heading.replace(" ", "-")
