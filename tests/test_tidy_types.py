"""What identifies a partition, an origin or a frame has its own type (`bettong.identifiers`) wherever it is passed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from tests.tidy.source import Finding, Source, sources

PRODUCT = re.compile(r"(src/bettong|services/(sender|processor|receiver))/")
# What users call takes numbers and text; `v1` is generated.
FOR_USERS = re.compile(r"src/bettong/(application|client|testing|v1)/")
# By the name of a parameter or a field, what it must not be.
NAMED = {
    "sequence": ("int", "SequenceNumber"),
    "previous": ("int", "SequenceNumber"),
    "acknowledged": ("int", "SequenceNumber"),
    "origin": ("str", "Origin"),
}
# A function that takes both takes a partition.
PAIRS = {"topic": "TopicPartition", "stage": "PartitionId"}
# A key that is a text and a number.
BARE_KEY = re.compile(r"(dict|Mapping|set|[sS]et|Counter)\[tuple\[str, (str, )?int\]")


def identifiers_have_their_types(source: Source) -> Iterator[Finding]:
    if not PRODUCT.match(str(source.path)) or FOR_USERS.match(str(source.path)):
        return
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _pairs(node)
        name, annotation = _annotated(node)
        text = "" if annotation is None else ast.unparse(annotation)
        if name in NAMED and NAMED[name][0] in text.split(" | "):
            yield getattr(node, "lineno", 1), f"{name}: {text}, expected {NAMED[name][1]}"
        if BARE_KEY.search(text):
            yield (
                getattr(node, "lineno", 1),
                f"{name}: {text}: a key of a text and a number has a type of its own",
            )


def _annotated(node: ast.AST) -> tuple[str, ast.expr | None]:
    """What an annotation stands at: a parameter, a variable or field; of a function, for what it returns."""
    match node:
        case ast.arg(arg=name, annotation=annotation):
            return name, annotation
        case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name), annotation=annotation):
            return name, annotation
        case (
            ast.FunctionDef(name=name, returns=annotation)
            | ast.AsyncFunctionDef(name=name, returns=annotation)
        ):
            return name, annotation
    return "", None


def _pairs(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Finding]:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    types = {each.arg: ast.unparse(each.annotation) for each in arguments if each.annotation is not None}
    for name, expected in PAIRS.items():
        if types.get(name) == "str" and types.get("partition") == "int":
            yield function.lineno, f"{function.name} takes {name} and partition: expected a {expected}"


def test_every_file_keeps_the_rule() -> None:
    found = [
        f"{source.path}:{line}: {what}"
        for source in sources()
        if source.is_python
        for line, what in identifiers_have_their_types(source)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        ("def f(sequence: int): ...", "def f(sequence: SequenceNumber, sequences: int): ..."),
        ("def f(*, origin: str | None = None): ...", "def f(*, origin: Origin | None = None): ..."),
        ("class A:\n    previous: int", "class A:\n    previous: bool"),
        ("def acknowledged(self) -> int: ...", "def acknowledged(self) -> SequenceNumber: ..."),
        ("async def f(topic: str, partition: int): ...", "async def f(log: TopicPartition): ..."),
        ("def f(stage: str, *, partition: int): ...", "def f(stage: str, partitions: int): ..."),
        ("x: dict[tuple[str, int], bytes] = {}", "x: dict[TopicPartition, bytes] = {}"),
        ("def f() -> set[tuple[str, str, int]]: ...", "def f() -> tuple[str, int]: ..."),
    ],
)
def test_the_rule_finds_what_it_is_for(bad: str, good: str) -> None:
    python = PurePosixPath("src/bettong/a.py")
    assert len(list(identifiers_have_their_types(Source(python, bad)))) == 1
    assert not list(identifiers_have_their_types(Source(python, good)))
    for path in ("src/bettong/client/a.py", "tests/unit/a.py", "services/node-tuner/a.py"):
        assert not list(identifiers_have_their_types(Source(PurePosixPath(path), bad)))
