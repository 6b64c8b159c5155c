"""Compares golden and found output. Pure: contents of files in, differences out.

Messages are kept as digests of 16 bytes, so that outputs may be larger than memory. It compares tables: label (a key,
or a file) -> digests of its messages, in order.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bettong.application.plan import Plan, Stage
from bettong.chaos.spec import Compare, OutputComparison, Split
from bettong.errors import SchemaError
from bettong.topics import DEAD_LETTERS

Table = Mapping[str, list[bytes]]
_ALL = "all"


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences of one key (or file): messages missing, there more than once, never expected, out of order."""

    label: str
    lost: int
    doubled: int
    unexpected: int
    misplaced: int


def messages(content: bytes, split: Split) -> Iterator[bytes]:
    """A file's messages. Raises SchemaError, naming the byte, for a file that ends inside one."""
    if split == "lines":
        yield from content.splitlines()
        return
    if split == "whole":
        if content:
            yield content
        return
    position = 0
    while position < len(content):
        start = position + 4 if split == "prefixed" else position
        end = start + (int.from_bytes(content[position:start]) if split == "prefixed" else int(split))
        if end > len(content):
            raise SchemaError(f"byte {position} of {len(content)}: the file ends inside a message ({split})")
        yield content[position:end]
        position = end


def table(files: Iterable[tuple[str, bytes]], output: OutputComparison) -> dict[str, list[bytes]]:
    """The table of one sink's files, by name. Raises SchemaError for content that does not split."""
    found: dict[str, list[bytes]] = {}
    for name, content in files:
        for message in messages(content, output.split):
            found.setdefault(_label(message, name, output), []).append(_digest(message))
    return found


def differences(golden: Table, found: Table, compare: Compare) -> list[Difference]:
    """Every label whose messages differ."""
    wrong = []
    for label in sorted({*golden, *found}):
        expected, got = golden.get(label, []), found.get(label, [])
        if expected == got:
            continue
        wanted, there = Counter(expected), Counter(got)
        surplus = there - wanted
        doubled = sum(count for digest, count in surplus.items() if digest in wanted)
        lost = (wanted - there).total()
        misplaced = 0
        if not lost and not surplus and compare is not Compare.MESSAGES:
            misplaced = sum(one != other for one, other in zip(expected, got, strict=True))
        if lost or surplus or misplaced:
            wrong.append(Difference(label, lost, doubled, surplus.total() - doubled, misplaced))
    return wrong


def defaults(plan: Plan) -> dict[str, OutputComparison | None]:
    """How each sink is compared by default; None where the spec must say.

    Byte for byte where one stage leads to it: its files then depend on the input alone. After a `key_by`, frames of
    several partitions meet in one log in any order: there the messages of each key are compared, or, where the
    results have no field of that name, the messages in any order. How encoded messages are delimited in a file, only
    their author knows. Dead letters are compared in any order.
    """
    found: dict[str, OutputComparison | None] = {}
    sources = {source.name for source in plan.sources}
    for sink in plan.sinks:
        stages = [stage for stage in plan.stages if any(output.target is sink for output in stage.outputs)]
        text = sink.encoder is None
        first = len(stages) == 1 and all(each.stream in sources for each in stages[0].inputs)
        key = _common_key(stages, sink.name) if text else None
        if first:
            found[sink.name] = OutputComparison(compare=Compare.BYTES, split="lines" if text else "whole")
        elif key is not None:
            found[sink.name] = OutputComparison(compare=Compare.KEYS, key=key)
        else:
            found[sink.name] = OutputComparison(compare=Compare.MESSAGES) if text else None
    found[DEAD_LETTERS] = OutputComparison(compare=Compare.MESSAGES)
    return found


def _common_key(stages: list[Stage], sink: str) -> str | None:
    """The field by which all inputs of the stages are keyed, when the sink's results have it too."""
    keys = {each.key for stage in stages for each in stage.inputs}
    key = keys.pop() if len(keys) == 1 else None
    outputs = [output for stage in stages for output in stage.outputs if output.target.name == sink]
    fits = isinstance(key, str) and all(
        key in {field.name for field in output.schema.fields} for output in outputs
    )
    return key if isinstance(key, str) and fits else None


def _label(message: bytes, file: str, output: OutputComparison) -> str:
    if output.compare is Compare.BYTES:
        return file
    if output.compare is Compare.MESSAGES or output.key is None:
        return _ALL
    if isinstance(output.key, tuple):
        return message[slice(*output.key)].decode("latin-1")
    return str(json.loads(message).get(output.key))


def _digest(message: bytes) -> bytes:
    return hashlib.blake2b(message, digest_size=16).digest()


def without_numbers(content: bytes) -> bytes:
    """Dead letters as lines, without their frame's number: in a later stage that is an offset, which retries move."""
    kept = ("computation", "reason", "message")
    dead_letters = (json.loads(line) for line in content.splitlines())
    return b"".join(
        json.dumps([dead_letter.get(name) for name in kept]).encode() + b"\n" for dead_letter in dead_letters
    )
